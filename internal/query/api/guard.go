package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"github.com/promlake/promlake/internal/tenant"
)

// BodyTooLargeError says that a request's body exceeds the limit in bytes.
type BodyTooLargeError struct{ Limit int64 }

func (e *BodyTooLargeError) Error() string {
	return fmt.Sprintf("request body exceeds the limit of %d bytes; raise --web.max-body-bytes", e.Limit)
}

// guard is what every route goes through: it survives panics, names the tenant, bounds the body and
// the expressions, and cuts off who does not read the answer.
func (s *server) guard(next http.Handler) http.Handler {
	return s.paced(s.recovered(s.withTenant(s.withBody(s.bounded(s.budgeted(next))))))
}

// recovered answers a panic with 500 and a log line. When the response has begun, it cuts the
// connection instead, so that the client cannot take the part for the whole.
func (s *server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tw := &trackingWriter{ResponseWriter: w}
		defer func() {
			p := recover()
			switch {
			case p == nil:
				return
			case p == http.ErrAbortHandler:
				panic(p)
			}
			s.logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if tw.began {
				panic(http.ErrAbortHandler)
			}
			w.Header().Del("Content-Encoding") // the compressor that set it is gone
			s.respondError(w, r, failure{"internal", http.StatusInternalServerError}, errors.New("internal error, see the server's log"))
		}()
		next.ServeHTTP(tw, r)
	})
}

// withTenant puts the request's tenant into its context.
func (s *server) withTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := tenant.FromRequest(r)
		if err != nil {
			s.respondError(w, r, badData, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(tenant.With(r.Context(), id)))
	})
}

// withBody reads the body of a request that has one, of whatever method, before the handler runs:
// forms are also read from a GET's. The handlers parse forms and ignore what goes wrong there, so a
// limit inside the body's reader would pass for a shorter form.
func (s *server) withBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		tooLarge := &BodyTooLargeError{Limit: s.settings.MaxBodyBytes}
		if r.ContentLength > s.settings.MaxBodyBytes {
			s.respondError(w, r, failure{"bad_data", http.StatusRequestEntityTooLarge}, tooLarge)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.settings.MaxBodyBytes))
		if limit := (*http.MaxBytesError)(nil); errors.As(err, &limit) {
			s.respondError(w, r, failure{"bad_data", http.StatusRequestEntityTooLarge}, tooLarge)
			return
		}
		if err != nil {
			s.respondError(w, r, badData, fmt.Errorf("read request body: %w", err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// trackingWriter knows whether the response has begun.
type trackingWriter struct {
	http.ResponseWriter
	began bool
}

func (w *trackingWriter) WriteHeader(code int) {
	w.began = true
	w.ResponseWriter.WriteHeader(code)
}

func (w *trackingWriter) Write(p []byte) (int, error) {
	w.began = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *trackingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is buffered, if the server can.
func (w *trackingWriter) Flush() {
	w.began = true
	flush(w.ResponseWriter)
}
