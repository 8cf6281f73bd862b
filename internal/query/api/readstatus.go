package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/prometheus/storage/remote"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// Upstream's remote read handler answers every storage error with 500. The storage therefore
// records the right status in the request's context, and withReadStatus replaces the 500 by it.

type statusKey struct{}

// recorded records the status of err if the context has a place for it, and returns err.
func recorded(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if code, ok := ctx.Value(statusKey{}).(*atomic.Int32); ok {
		code.Store(int32(respond.FailureOf(err).Code))
	}
	return err
}

func withReadStatus(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := new(atomic.Int32)
		ctx := context.WithValue(r.Context(), statusKey{}, code)
		next.ServeHTTP(&readStatus{ResponseWriter: w, ctx: ctx, code: code}, r.WithContext(ctx))
	})
}

// boundedRead checks the matchers of a remote read before upstream compiles them. Upstream answers
// invalid ones with 500.
func (s *server) boundedRead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // impossible: the guard has read the body
			s.respond.Error(w, r, respond.BadData, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		read, err := remote.DecodeReadRequest(r)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil {
			next.ServeHTTP(w, r) // upstream answers the error
			return
		}
		var patterns []string
		for _, q := range read.Queries {
			for _, m := range q.Matchers {
				patterns = append(patterns, m.Value)
			}
		}
		s.guard.Bounded(w, r, nil, patterns, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, q := range read.Queries {
				if _, err := remote.FromLabelMatchers(q.Matchers); err != nil {
					s.respond.Error(w, r, respond.BadData, err)
					return
				}
			}
			next.ServeHTTP(w, r)
		}))
	})
}

type readStatus struct {
	http.ResponseWriter
	ctx  context.Context
	code *atomic.Int32 // 0: no storage error
}

func (w *readStatus) WriteHeader(code int) {
	if code == http.StatusInternalServerError {
		if known := int(w.code.Load()); known != 0 {
			code = known
		} else if err := w.ctx.Err(); err != nil { // it ended while it waited in upstream's queue
			code = respond.FailureOf(respond.Classify(w.ctx, err)).Code
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Flush sends buffered bytes, as the stream of chunks requires.
func (w *readStatus) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a failed flush shows as a failed write
}
