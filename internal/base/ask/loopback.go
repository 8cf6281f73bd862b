package ask

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
)

// Loopback returns a RoundTripper that calls h without a network, and returns an answer as soon as
// h begins it. The body is read while h writes it; to close the body ends h's context and waits for
// h. An answer that h breaks off is an error of its body.
func Loopback(h http.Handler) http.RoundTripper { return loopback{h} }

type loopback struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t loopback) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, out := io.Pipe()
	w := &response{header: http.Header{}, out: out, begun: make(chan struct{})}
	ended := make(chan struct{})
	request := r.Clone(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	go func() {
		defer close(ended)
		defer cancel()
		err := serve(t.h, w, request)
		w.begin(http.StatusOK, err)
		_ = w.out.CloseWithError(err) // it has no error
		_ = request.Body.Close()      // a RoundTripper must close the body; bodies of requests are in memory
	}()
	closer := &answerBody{PipeReader: body, cancel: cancel, ended: ended}
	select {
	case <-w.begun:
	case <-r.Context().Done():
		_ = closer.Close() // it has no error
		return nil, r.Context().Err()
	}
	if w.failed != nil {
		_ = closer.Close() // it has no error
		return nil, w.failed
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.sent,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: closer, ContentLength: -1, Request: r,
	}, nil
}

// serve calls a handler. A handler that panics gives an error, as it does in a server.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
			return
		case http.ErrAbortHandler:
		default:
			slog.Error("a handler panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		}
		err = errors.New("the answer was broken off; the log says why")
	}()
	h.ServeHTTP(w, r)
	return nil
}

// response passes what a handler writes to the reader of the answer. It implements
// http.ResponseWriter.
type response struct {
	header http.Header
	out    *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closed when the fields below are set
	status int
	sent   http.Header
	failed error // without an answer
}

// begin publishes the beginning of the answer.
func (w *response) begin(status int, failed error) {
	w.once.Do(func() {
		w.status, w.sent, w.failed = status, w.header.Clone(), failed
		close(w.begun)
	})
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) { w.begin(status, nil) }

func (w *response) Write(p []byte) (int, error) {
	w.begin(http.StatusOK, nil)
	return w.out.Write(p)
}

// answerBody is the body of an answer whose handler may still run.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

// Close ends the handler and waits for it.
func (b *answerBody) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	<-b.ended
	return err
}
