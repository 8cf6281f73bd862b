// Package loopback answers HTTP requests with a handler of this process, without a network.
package loopback

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Transport returns a RoundTripper that calls h. It returns an answer when h has written all of it,
// and keeps it in memory.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := &response{status: http.StatusOK, header: http.Header{}}
	if err := serve(t.h, w, r); err != nil {
		return nil, err
	}
	_ = r.Body.Close() // a RoundTripper must close the body; bodies of requests are in memory
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// serve calls a handler. A handler that breaks its answer off gives an error, as it does in a
// server.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errors.New("the answer was broken off; the log says why")
		default:
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// response keeps what a handler writes. It implements http.ResponseWriter.
type response struct {
	status  int
	header  http.Header
	body    bytes.Buffer
	started bool
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if !w.started {
		w.status, w.started = status, true
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.started = true
	return w.body.Write(p)
}
