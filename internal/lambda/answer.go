package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// errTooLarge is what a handler gets that writes more than one answer may hold.
var errTooLarge = errors.New("answer is larger than AWS Lambda takes")

// recorder is the http.ResponseWriter of an answer that leaves in one piece. It flushes, to no
// effect, because handlers that stream where they can ask for a Flusher.
type recorder struct {
	header http.Header
	status int // 0 until the header is written
	frozen http.Header
	body   []byte
	max    int64 // bytes of body; beyond it nothing is kept
	over   bool
}

func newRecorder(max int64) *recorder {
	return &recorder{header: http.Header{}, max: max, body: takeBuffer()}
}

// release gives the memory back; the recorder is not used any more.
func (w *recorder) release() {
	giveBuffer(w.body)
	w.body = nil
}

// restart forgets the answer so far.
func (w *recorder) restart() {
	w.header, w.status, w.frozen, w.body, w.over = http.Header{}, 0, nil, w.body[:0], false
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status, w.frozen = status, w.header.Clone()
	}
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

// envelope is the answer's JSON without its body.
type envelope struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies,omitempty"`
	Base64  bool              `json:"isBase64Encoded"`
}

// head makes the parts of an answer that are not its body. Payload format 2.0 has one value per
// header: several are joined by commas, which means the same (RFC 9110, section 5.3), but for
// Set-Cookie, which has a place of its own. sample is the beginning of the body.
func head(status int, h http.Header, sample []byte) envelope {
	e := envelope{Status: status, Headers: make(map[string]string, len(h)+1)}
	for name, vs := range h {
		switch name {
		case "Set-Cookie":
			e.Cookies = vs
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer": // of a connection that is not ours
		default:
			e.Headers[name] = strings.Join(vs, ", ")
		}
	}
	if e.Headers["Content-Type"] == "" && len(sample) > 0 {
		e.Headers["Content-Type"] = http.DetectContentType(sample)
	}
	return e
}

// encode is the answer as Lambda takes it, or errTooLarge.
func (w *recorder) encode(limit int64) ([]byte, error) {
	if w.over {
		return nil, errTooLarge
	}
	w.WriteHeader(http.StatusOK)
	e := head(w.status, w.frozen, w.body)
	e.Base64 = !isText(e.Headers, w.body)
	out, err := e.encode(w.body, limit)
	if errors.Is(err, errTooLarge) && !e.Base64 {
		e.Base64 = true // shorter where much of a text is escaped
		out, err = e.encode(w.body, limit)
	}
	return out, err
}

// encode is the whole answer, in memory that giveBuffer may take back, or errTooLarge.
func (e envelope) encode(body []byte, limit int64) ([]byte, error) {
	start, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	out := append(takeBuffer(), start[:len(start)-1]...) // its last brace moves to the end
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

// isText reports whether a body may stand in JSON as it is, which is smaller than base64 and readable
// in logs.
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

// maxEscape is how many bytes a byte takes in a JSON string at most.
const maxEscape = 6

const hexDigits = "0123456789abcdef"

// short is what follows the backslash of the bytes that have a short escape.
var short = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't'}

// escapes is how many bytes each byte takes in a JSON string.
var escapes = func() (n [256]uint8) {
	for c := range n {
		n[c] = 1
		if c < 0x20 {
			n[c] = maxEscape
		}
	}
	for c := range short {
		if short[c] != 0 {
			n[c] = 2
		}
	}
	return n
}()

// quoteChunk is how many bytes are quoted at a time, for which there is room in any case.
const quoteChunk = 4096

// appendQuoted appends valid UTF-8 as it stands inside a JSON string (RFC 8259, section 7). It
// stops once out is longer than limit.
func appendQuoted(out, text []byte, limit int64) []byte {
	for len(text) > 0 && int64(len(out)) <= limit {
		chunk := text[:min(quoteChunk, len(text))]
		text = text[len(chunk):]
		n := len(out)
		out = slices.Grow(out, maxEscape*len(chunk))
		out = out[:n+maxEscape*len(chunk)]
		for _, c := range chunk {
			switch escapes[c] {
			case 1:
				out[n] = c
				n++
			case 2:
				out[n], out[n+1] = '\\', short[c]
				n += 2
			default:
				n += copy(out[n:], []byte{'\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf]})
			}
		}
		out = out[:n]
	}
	return out
}

// prometheusError is the body of an error as Prometheus' HTTP API has it.
type prometheusError struct {
	Status string `json:"status"`
	Type   string `json:"errorType"`
	Error  string `json:"error"`
}

// respond writes an error as Prometheus' clients read it.
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

// tooLarge answers instead of an answer over the limit: 422 and errorType "execution", as
// Prometheus does for a query that loads too many samples, so that clients show the text and do not
// try again.
func tooLarge(w http.ResponseWriter, kind Event, s Settings) {
	way := "or ask through the function's URL, which streams larger answers"
	if kind == FunctionURL {
		way = "or let the function's URL stream them (InvokeMode RESPONSE_STREAM and --lambda.streaming)"
	}
	respond(w, http.StatusUnprocessableEntity, "execution", fmt.Sprintf(
		"the answer is larger than the %d bytes that AWS Lambda takes in one piece (lambda.max-answer-bytes): "+
			"ask for fewer series, a longer step or a shorter range, accept gzip, %s", s.MaxAnswerBytes, way))
}
