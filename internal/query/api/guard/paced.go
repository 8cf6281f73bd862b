package guard

import (
	"net/http"
	"time"
)

// PieceBytes is the size of the pieces of an answer: a client has Guard.WriteTimeout for each.
const PieceBytes = 64 << 10

// paced disconnects clients that do not read: each piece of an answer must be written within
// Guard.WriteTimeout. The whole answer has no time limit but the query's.
func (g *Guard) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: g.WriteTimeout}
		defer p.end()
		next.ServeHTTP(p, r)
	})
}

// pacedWriter extends the write deadline of its connection before each piece.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	set     bool // the connection has a deadline
}

// extend sets the deadline of the next piece. Where there is no connection, as in a Lambda
// function, there is no deadline.
func (w *pacedWriter) extend() {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.timeout)); err == nil {
		w.set = true
	}
}

// end removes the deadline from the connection, which later requests reuse.
func (w *pacedWriter) end() {
	if w.set {
		_ = w.control.SetWriteDeadline(time.Time{}) // a closed connection needs no deadline
	}
}

// Write implements http.ResponseWriter.
func (w *pacedWriter) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+PieceBytes)]
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
