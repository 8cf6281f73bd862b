package process

import (
	"io"
	"net/http"
	"time"
)

// What is read of a body after its request was answered.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// draining reads what a handler leaves of a request's body, within limits, before the server sends
// the answer: a client that sends everything before it reads would be reset while it sends, and
// never see why it was refused. A client that waits for 100 (Continue) has sent nothing.
func draining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Expect") != "" {
			next.ServeHTTP(w, r)
			return
		}
		body := &drainedBody{ReadCloser: r.Body}
		r.Body = body
		next.ServeHTTP(w, r)
		if !body.ended {
			// Where a deadline cannot be set or nothing can be read, the connection is gone.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
			_, _ = io.CopyN(io.Discard, body, drainBytes)
		}
	})
}

// drainedBody knows whether its end was read. Only then does net/http wait for the next request, and
// a deadline would end that wait.
type drainedBody struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (b *drainedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}
