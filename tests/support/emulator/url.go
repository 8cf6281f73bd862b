package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// StreamInvoker delivers an event to a function and returns its answer while it is written.
type StreamInvoker interface {
	Invoker
	InvokeStream(ctx context.Context, payload []byte) (*Stream, error)
}

// URL is a Function URL.
type URL struct {
	Function StreamInvoker
	Stream   bool // InvokeMode is RESPONSE_STREAM, else BUFFERED
}

// ServeHTTP implements http.Handler. If the function aborts its stream, the response is aborted,
// too.
func (u *URL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	payload, err := u.event(r)
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	if !u.Stream {
		b, err := u.Function.Invoke(r.Context(), payload)
		if err != nil {
			failed(w, err)
			return
		}
		writeAnswer(w, b)
		return
	}
	s, err := u.Function.InvokeStream(r.Context(), payload)
	if err != nil {
		failed(w, err)
		return
	}
	defer s.Body.Close()
	if s.Prelude == nil { // not an HTTP answer: the body is its bytes
		s.Prelude = &Prelude{StatusCode: http.StatusOK, Headers: map[string]string{"Content-Type": "application/octet-stream"}}
	}
	writeHead(w, s.Prelude.StatusCode, s.Prelude.Headers, s.Prelude.Cookies)
	if err := relay(w, s.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func failed(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrRequestTooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	refuse(w, http.StatusBadGateway, "Internal Server Error")
}

// relay copies an answer and flushes each piece.
func relay(w http.ResponseWriter, r io.Reader) error {
	c := http.NewResponseController(w)
	for chunk := make([]byte, 64<<10); ; {
		n, err := r.Read(chunk)
		if n > 0 {
			if _, err := w.Write(chunk[:n]); err != nil {
				return err
			}
			_ = c.Flush() // a writer that cannot flush sends the bytes at its end
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// event returns a request as a Function URL passes it on: the path is not decoded.
func (u *URL) event(r *http.Request) ([]byte, error) {
	e := newEvent(r, r.URL.EscapedPath())
	e.RouteKey, e.Context.Route = "$default", "$default"
	const id = "abcdefghijklmnopqrstuvwxyz012345"
	e.Context.API, e.Context.Prefix, e.Context.Domain = id, id, id+".lambda-url."+region+".on.aws"
	if err := e.read(r, MaxPayload); err != nil {
		return nil, err
	}
	return json.Marshal(e)
}
