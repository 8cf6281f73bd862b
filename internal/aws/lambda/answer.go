package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"
)

// errTooLarge is returned to a handler that writes more than an answer may contain.
var errTooLarge = errors.New("answer is larger than AWS Lambda takes")

// header is the header of an answer. It implements a part of http.ResponseWriter.
type header struct {
	open   http.Header // made at its first use
	status int         // 0 until the header is written
	frozen http.Header // with that status
}

// Header implements http.ResponseWriter.
func (h *header) Header() http.Header {
	if h.open == nil {
		h.open = http.Header{}
	}
	return h.open
}

// WriteHeader implements http.ResponseWriter.
func (h *header) WriteHeader(status int) {
	if h.status == 0 && status >= 200 {
		h.status, h.frozen = status, h.open.Clone()
	}
}

// recorder is the http.ResponseWriter of an answer that is sent as a whole. Flush has no effect; it
// exists because handlers that stream elsewhere require a Flusher.
type recorder struct {
	header
	body []byte
	max  int64 // bytes of body; more are discarded
	over bool
}

// restart discards the answer so far.
func (w *recorder) restart() {
	w.header, w.body, w.over = header{}, w.body[:0], false
}

// Write implements io.Writer.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.over || int64(len(w.body)+len(p)) > w.max {
		w.over, w.body = true, w.body[:0]
		return 0, errTooLarge
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *recorder) Flush() { w.WriteHeader(http.StatusOK) }

// envelope is the JSON of an answer without its body.
type envelope struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies,omitempty"`
	Base64  bool              `json:"isBase64Encoded"`
}

// head returns an answer without its body. Payload format 2.0 has one value per header: several
// values are joined by commas, which is equivalent (RFC 9110, section 5.3), except for Set-Cookie,
// which has a field of its own. sample is the beginning of the body.
func head(status int, h http.Header, sample []byte) envelope {
	e := envelope{Status: status, Headers: make(map[string]string, len(h)+1)}
	for name, vs := range h {
		switch name {
		case "Set-Cookie":
			e.Cookies = vs
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer":
			// headers of a connection that the function does not have
		default:
			e.Headers[name] = strings.Join(vs, ", ")
		}
	}
	if e.Headers["Content-Type"] == "" && len(sample) > 0 {
		e.Headers["Content-Type"] = http.DetectContentType(sample)
	}
	return e
}

// encode returns the answer as JSON for Lambda, or errTooLarge.
func (w *recorder) encode(limit int64) ([]byte, error) {
	if w.over {
		return nil, errTooLarge
	}
	w.WriteHeader(http.StatusOK)
	e := head(w.status, w.frozen, w.body)
	e.Base64 = !isText(e.Headers, w.body)
	out, err := e.encode(w.body, limit)
	if errors.Is(err, errTooLarge) && !e.Base64 {
		e.Base64 = true // shorter if much of the text is escaped
		out, err = e.encode(w.body, limit)
	}
	return out, err
}

// encode returns the whole answer, in memory for giveBuffer, or errTooLarge.
func (e envelope) encode(body []byte, limit int64) ([]byte, error) {
	start, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	out := append(takeBuffer(), start[:len(start)-1]...) // the final brace follows the body
	out = append(out, `,"body":"`...)
	if e.Base64 {
		out = base64.StdEncoding.AppendEncode(out, body)
	} else {
		out = appendQuoted(out, body, limit)
	}
	out = append(out, `"}`...)
	if int64(len(out)) > limit {
		giveBuffer(out)
		return nil, errTooLarge
	}
	return out, nil
}

// isText reports whether a body can be a JSON string, which is smaller than base64 and readable in
// logs.
func isText(headers map[string]string, body []byte) bool {
	if e := headers["Content-Encoding"]; e != "" && e != "identity" {
		return false
	}
	kind, _, _ := mime.ParseMediaType(headers["Content-Type"])
	switch {
	case len(body) == 0:
		return true
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"):
	case kind == "application/json", kind == "application/x-ndjson", kind == "application/javascript", kind == "application/xml",
		kind == "application/openmetrics-text":
	default:
		return false
	}
	return utf8.Valid(body)
}

// appendQuoted appends valid UTF-8 as the content of a JSON string (RFC 8259, section 7). It stops
// when out is longer than limit.
func appendQuoted(out, text []byte, limit int64) []byte {
	done := 0
	for i, c := range text {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[done:i]...)
		done = i + 1
		if at := strings.IndexByte("\"\\\n\r\t", c); at >= 0 {
			out = append(out, '\\', `"\nrt`[at])
		} else {
			out = fmt.Appendf(out, `\u%04x`, c)
		}
		if int64(len(out)) > limit {
			return out
		}
	}
	return append(out, text[done:]...)
}

// prometheusError is the body of an error of Prometheus' HTTP API.
type prometheusError struct {
	Status string `json:"status"`
	Type   string `json:"errorType"`
	Error  string `json:"error"`
}

// respond writes an error in the format of Prometheus' HTTP API.
func respond(w http.ResponseWriter, status int, kind, text string) {
	body, err := json.Marshal(prometheusError{"error", kind, text})
	if err != nil {
		panic(err) // three strings
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// tooLarge replaces an answer that exceeds the limit by 422 with errorType "execution", as
// Prometheus answers a query that loads too many samples, so that clients show the text and do not
// retry; for a Remote, by 413.
func tooLarge(w http.ResponseWriter, path string, kind Event, s Settings) {
	fewer := "request fewer series, a longer step or a shorter range"
	if strings.HasSuffix(path, "/sql") {
		fewer = "request fewer rows, or format=parquet"
	}
	status, way := http.StatusUnprocessableEntity, "or use the function's URL, which streams larger answers"
	switch kind {
	case FunctionURL:
		way = "or let the function's URL stream answers (InvokeMode RESPONSE_STREAM and --lambda.streaming)"
	case Direct:
		status = http.StatusRequestEntityTooLarge
	}
	respond(w, status, "execution", fmt.Sprintf(
		"the answer is larger than the %d bytes that AWS Lambda accepts without streaming: "+
			"%s, accept gzip, %s", s.MaxAnswerBytes, fewer, way))
}

// buffers reuses the memory of bodies and answers for later invocations. It is larger than
// everything else that an invocation allocates, and the first use of new memory costs more than
// writing to it.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// takeBuffer returns an empty buffer.
func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// giveBuffer returns an unused buffer to the pool. Buffers are at most a few times as large as
// Lambda's payloads, and the garbage collector empties the pool.
func giveBuffer(b []byte) { buffers.Put(&b) }
