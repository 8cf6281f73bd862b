// Package respond answers requests of the query API: data in upstream's envelope, and errors with
// upstream's types and statuses.
package respond

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/grafana/regexp"
	"github.com/prometheus/prometheus/util/httputil"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// BadData is the answer to an invalid request.
var BadData = Failure{"bad_data", http.StatusBadRequest}

// BadRequest is an error in the client's parameters.
type BadRequest string

// Error implements error.
func (e BadRequest) Error() string { return string(e) }

// Responder answers as upstream's handlers do.
type Responder struct {
	CORS   *regexp.Regexp // origins whose pages may read answers; nil: none
	Logger *slog.Logger
}

// JSON returns a handler that answers with the data of f as upstream's handlers do: CORS,
// compression, upstream's envelope and codec.
func (a Responder) JSON(f func(*http.Request) (data any, err error)) http.Handler {
	return a.encoded(f, a.Data)
}

// PlainJSON is JSON without the envelope, as Mimir's own handlers have it. Errors have one.
func (a Responder) PlainJSON(f func(*http.Request) (data any, err error)) http.Handler {
	return a.encoded(f, func(w http.ResponseWriter, r *http.Request, data any) {
		body, err := json.Marshal(data)
		a.write(w, r, http.StatusOK, body, err)
	})
}

func (a Responder) encoded(f func(*http.Request) (data any, err error), send func(http.ResponseWriter, *http.Request, any)) http.Handler {
	return httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := f(r)
		switch {
		case err == nil:
			send(w, r, data)
		case isA[BadRequest](err):
			a.Error(w, r, BadData, err)
		default:
			a.StorageError(w, r, err)
		}
	})}
}

// Data answers with data in upstream's envelope.
func (a Responder) Data(w http.ResponseWriter, r *http.Request, data any) {
	body, err := v1.JSONCodec{}.Encode(&v1.Response{Status: "success", Data: data})
	a.write(w, r, http.StatusOK, body, err)
}

// StorageError answers with the status of an error of the storage.
func (a Responder) StorageError(w http.ResponseWriter, r *http.Request, err error) {
	err = Classify(r.Context(), err)
	a.Error(w, r, FailureOf(err), err)
}

// Error answers with upstream's error envelope.
func (a Responder) Error(w http.ResponseWriter, r *http.Request, f Failure, err error) {
	body, encoding := v1.JSONCodec{}.Encode(&v1.Response{Status: "error", ErrorType: f.Kind, Error: err.Error()})
	a.write(w, r, f.Code, body, encoding)
}

// write sends a body of JSON, or 500 if err says that it could not be encoded.
func (a Responder) write(w http.ResponseWriter, r *http.Request, code int, body []byte, err error) {
	if a.CORS != nil {
		httputil.SetCORS(w, a.CORS, r)
	}
	if err != nil {
		a.Logger.Error("encode response", "path", r.URL.Path, "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", v1.JSONCodec{}.ContentType().String())
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		a.Logger.Debug("write response", "path", r.URL.Path, "err", err)
	}
}
