package api

import (
	"net/http"
	"time"
)

// pieceBytes is how much of an answer a client must take within Settings.WriteTimeout.
const pieceBytes = 64 << 10

// paced cuts off clients that do not read: each piece of an answer has Settings.WriteTimeout to be taken. Answers as a whole may take as
// long as their queries.
func (s *server) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.settings.WriteTimeout}
		defer p.end()
		next.ServeHTTP(p, r)
	})
}

// pacedWriter moves the deadline of its connection forward with each piece that is written.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	set     bool // the connection has a deadline
}

// extend gives the next piece its time. Where there is no connection, as in a function, there is no deadline either.
func (w *pacedWriter) extend() {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.timeout)); err == nil {
		w.set = true
	}
}

// end takes the deadline from the connection, which other requests will use.
func (w *pacedWriter) end() {
	if w.set {
		_ = w.control.SetWriteDeadline(time.Time{}) // a connection that is gone needs none
	}
}

// Write implements http.ResponseWriter.
func (w *pacedWriter) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+pieceBytes)]
		w.extend()
		m, err := w.ResponseWriter.Write(piece)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush implements http.Flusher.
func (w *pacedWriter) Flush() {
	w.extend()
	flush(w.ResponseWriter)
}
