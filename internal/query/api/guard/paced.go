package guard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/access/auth"
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

// maxSource is the longest name or title of a source, in bytes.
const maxSource = 200

// originOf returns the origin of a request for a path, without its text, and the request with that
// in its context.
func originOf(path string, r *http.Request) (*request.Origin, *http.Request) {
	o := &request.Origin{Path: path, Remote: r.RemoteAddr, Source: sourceOf(r.Header)}
	o.Token, o.Allowance = auth.Caller(r.Context())
	of := request.From(r.Context())
	of.Origin = o
	return o, r.WithContext(request.With(r.Context(), of))
}

// sourceOf returns what sends a request by its headers. Those of dashboards and alert rules are
// Grafana's (pkg/services/pluginsintegration/clientmiddleware, and the evaluation of its rules);
// titles are encoded as in the path of a URL. Whoever may query may send any of them.
func sourceOf(h http.Header) request.Source {
	if text := h.Get(request.SourceHeader); text != "" {
		var s request.Source
		if json.Unmarshal([]byte(text), &s) == nil && slices.Contains(request.Kinds, s.Kind) && len(s.Name) <= maxSource && len(s.Title) <= maxSource {
			return s
		}
	}
	name := func(name string) string { return h.Get(name)[:min(maxSource, len(h.Get(name)))] }
	title := func(name string) string {
		text := h.Get(name)
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return strings.ToValidUTF8(text[:min(maxSource, len(text))], "")
	}
	switch {
	case h.Get("X-Rule-Uid") != "":
		return request.Source{Kind: request.AlertRule, Name: name("X-Rule-Uid"), Title: title("X-Rule-Name")}
	case h.Get("X-Dashboard-Uid") != "":
		return request.Source{Kind: request.Dashboard, Name: name("X-Dashboard-Uid"), Title: title("X-Dashboard-Title")}
	}
	program, _, _ := strings.Cut(name("User-Agent"), "/")
	program, _, _ = strings.Cut(program, " ")
	switch program {
	case "Mozilla":
		program = "browser"
	case "":
		program = "unknown"
	}
	return request.Source{Kind: request.Client, Name: program}
}
