package main

import (
	"bytes"
	"io"
	"net/http"

	"github.com/promlake/promlake/internal/tenant"
)

// tenantTransport names the tenant in every request.
type tenantTransport struct {
	tenant string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t tenantTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(tenant.Header, t.tenant)
	return t.next.RoundTrip(r)
}

// handlerTransport answers requests by a handler in this process.
type handlerTransport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := &response{status: http.StatusOK, header: http.Header{}}
	t.h.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, r.Context().Err()
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
