package lambda

import (
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// streamBuffer is how much of an answer (bytes) is kept before it leaves, unless the handler
// flushes.
const streamBuffer = 32 << 10

// streamer is the http.ResponseWriter of an answer that leaves while the handler writes it. Its
// methods are called by one goroutine.
type streamer struct {
	header http.Header
	status int // 0 until the header is written
	frozen http.Header
	buf    []byte
	pipe   *io.PipeWriter
	sent   int64
	max    int64
	err    error // what ended the stream before the handler did

	started bool
	begun   chan events.LambdaFunctionURLStreamingResponse // gets what precedes the body, once
}

func newStreamer(max int64, pipe *io.PipeWriter) *streamer {
	return &streamer{
		header: http.Header{}, pipe: pipe, max: max,
		begun: make(chan events.LambdaFunctionURLStreamingResponse, 1),
	}
}

// Header implements http.ResponseWriter.
func (w *streamer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status, w.frozen = status, w.header.Clone()
	}
}

// Write implements io.Writer.
func (w *streamer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.err != nil {
		return 0, w.err
	}
	if w.sent += int64(len(p)); w.sent > w.max {
		w.err = fmt.Errorf("%w: %d bytes in a stream (lambda.max-stream-bytes)", errTooLarge, w.max)
		return 0, w.err
	}
	if len(w.buf)+len(p) <= streamBuffer {
		w.buf = append(w.buf, p...)
		return len(p), nil
	}
	w.Flush()
	if w.err == nil {
		_, w.err = w.pipe.Write(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush implements http.Flusher: what was written leaves now.
func (w *streamer) Flush() {
	w.WriteHeader(http.StatusOK)
	if !w.started {
		w.started = true
		e := head(w.status, w.frozen, w.buf)
		w.begun <- events.LambdaFunctionURLStreamingResponse{StatusCode: e.Status, Headers: e.Headers, Cookies: e.Cookies}
	}
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.pipe.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// untouched reports whether nothing has left yet, so that the answer may still become another one.
func (w *streamer) untouched() bool { return !w.started && w.err == nil }

// restart forgets an answer of which nothing has left.
func (w *streamer) restart() {
	w.header, w.status, w.frozen, w.buf, w.sent = http.Header{}, 0, nil, w.buf[:0], 0
}

// end lets the rest leave. With an error the client sees a broken stream, and Lambda the error.
func (w *streamer) end(err error) {
	w.Flush()
	if err == nil {
		err = w.err
	}
	_ = w.pipe.CloseWithError(err) // nil is the end of the answer
}
