package answers

import (
	"net/http"
	"strings"

	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// streamPoints is the number of points from which an answer is sent in parts, as they are encoded.
const streamPoints = 64 << 10

// streamed lets the codec send a large answer of next in parts, so that its text is never in memory
// at once.
func streamed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := r.Context().Value(answerKey{}).(*answer)
		if !ok || strings.Contains(r.Header.Get(acceptEncoding), "deflate") { // which upstream's handler does
			next.ServeHTTP(w, r)
			return
		}
		a.stream.ResponseWriter = w
		next.ServeHTTP(&a.stream, r)
	})
}

// stream sends a body in parts. What its handler writes afterwards is the end of the body.
type stream struct {
	http.ResponseWriter // nil: the body must be written at once
	began               bool
	err                 error // of the first part that could not be sent
}

// sendParts sends parts, in order, and empties them. An answer that cannot be encoded to its end is
// cut off.
func (s *stream) sendParts(parts []*scratch, errs []error) error {
	for k, p := range parts {
		if errs[k] != nil {
			panic(http.ErrAbortHandler)
		}
		part := p.out
		if !s.began {
			s.Header().Set("Content-Type", v1.JSONCodec{}.ContentType().String())
			s.WriteHeader(http.StatusOK)
			s.began = true
		}
		if s.err == nil && len(part) > 0 {
			_, s.err = s.Write(part)
		}
		p.out = p.out[:0]
	}
	return s.err
}

// WriteHeader implements http.ResponseWriter. Parts that were sent had a header.
func (s *stream) WriteHeader(code int) {
	if !s.began {
		s.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }
