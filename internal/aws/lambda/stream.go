package lambda

import (
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// streamBuffer is the number of bytes that are buffered before they are sent, unless the handler
// flushes.
const streamBuffer = 32 << 10

// streamer is the http.ResponseWriter of an answer that is sent while the handler writes it. It is
// not safe for concurrent use.
type streamer struct {
	header
	buf  []byte
	pipe *io.PipeWriter
	sent int64
	max  int64
	err  error // ended the stream before the handler

	started bool
	begun   chan events.LambdaFunctionURLStreamingResponse // receives status and headers, once
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

// Flush implements http.Flusher: it sends the buffered bytes.
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

// restart discards an answer of which nothing was sent.
func (w *streamer) restart() {
	w.header, w.buf, w.sent = header{}, w.buf[:0], 0
}

// end sends the rest. After an error, the client gets an aborted stream, and Lambda gets the error.
func (w *streamer) end(err error) {
	w.Flush()
	if err == nil {
		err = w.err
	}
	_ = w.pipe.CloseWithError(err) // nil is the end of the answer
}
