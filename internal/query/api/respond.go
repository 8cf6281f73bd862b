package api

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/prometheus/util/httputil"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// badData is the answer to an invalid request.
var badData = failure{"bad_data", http.StatusBadRequest}

// badRequest is an error in the client's parameters.
type badRequest string

// Error implements error.
func (e badRequest) Error() string { return string(e) }

// json returns a handler that answers with the data of f as upstream's handlers do: CORS,
// compression, upstream's envelope and codec.
func (s *server) json(f func(*http.Request) (data any, err error)) http.Handler {
	return s.encoded(f, func(data any) ([]byte, error) {
		return v1.JSONCodec{}.Encode(&v1.Response{Status: "success", Data: data})
	})
}

// plainJSON is json without the envelope, as Mimir's own handlers have it. Errors have one.
func (s *server) plainJSON(f func(*http.Request) (data any, err error)) http.Handler {
	return s.encoded(f, json.Marshal)
}

func (s *server) encoded(f func(*http.Request) (data any, err error), encode func(any) ([]byte, error)) http.Handler {
	return httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := f(r)
		switch {
		case err == nil:
			httputil.SetCORS(w, s.cors, r)
			body, err := encode(data)
			s.write(w, r, http.StatusOK, body, err)
		case isA[badRequest](err):
			s.respondError(w, r, badData, err)
		default:
			err = classify(r.Context(), err)
			s.respondError(w, r, failureOf(err), err)
		}
	})}
}

// respondError answers with upstream's error envelope.
func (s *server) respondError(w http.ResponseWriter, r *http.Request, f failure, err error) {
	httputil.SetCORS(w, s.cors, r)
	body, encoding := v1.JSONCodec{}.Encode(&v1.Response{Status: "error", ErrorType: f.kind, Error: err.Error()})
	s.write(w, r, f.code, body, encoding)
}

// write sends a body of JSON, or 500 if err says that it could not be encoded.
func (s *server) write(w http.ResponseWriter, r *http.Request, code int, body []byte, err error) {
	if err != nil {
		s.logger.Error("encode response", "path", r.URL.Path, "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", v1.JSONCodec{}.ContentType().String())
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		s.logger.Debug("write response", "path", r.URL.Path, "err", err)
	}
}
