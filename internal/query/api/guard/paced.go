package guard

import (
	"net/http"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/query/request"
)

// PieceBytes is the size of the pieces of an answer: a client has Guard.WriteTimeout for each.
const PieceBytes = 64 << 10

// writer extends the write deadline of its connection before each piece, and records whether the
// response has begun.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	set     bool // the connection has a deadline
	began   bool
	origin  *request.Origin
}

// extend sets the deadline of the next piece. Where there is no connection, as in a Lambda
// function, there is no deadline.
func (w *writer) extend() {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.timeout)); err == nil {
		w.set = true
	}
}

// end removes the deadline from the connection, which later requests reuse.
func (w *writer) end() {
	if w.set {
		_ = w.control.SetWriteDeadline(time.Time{}) // a closed connection needs no deadline
	}
}

// begin notes that the response begins. Its headers say what the queries of the request took, as
// those of Mimir's query frontend do.
func (w *writer) begin() {
	if ns := w.origin.Took.Nanoseconds.Load(); ns > 0 && !w.began {
		text := strconv.AppendFloat([]byte("querier_wall_time;dur="), float64(ns)/1e6, 'f', 3, 64)
		text = strconv.AppendInt(append(text, ", bytes_processed;val="...), w.origin.Took.Bytes.Load(), 10)
		text = strconv.AppendInt(append(text, ", store_requests;val="...), w.origin.Took.Requests.Load(), 10)
		w.Header()["Server-Timing"] = []string{string(text)}
	}
	w.began = true
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(code int) {
	w.begin()
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController access to the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (n int, err error) {
	w.begin()
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
func (w *writer) Flush() {
	w.begin()
	w.extend()
	_ = w.control.Flush() // a failed flush shows as a failed write
}
