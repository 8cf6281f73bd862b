package api

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Upstream's remote read handler answers every storage error with 500. The storage therefore notes
// in the request's context what failed, and withReadStatus puts that status in place of the 500.

type noteKey struct{}

// noted notes how err is answered, if the context's request asked for it, and returns err.
func noted(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if code, ok := ctx.Value(noteKey{}).(*atomic.Int32); ok {
		code.Store(int32(failureOf(err).code))
	}
	return err
}

func withReadStatus(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := new(atomic.Int32)
		ctx := context.WithValue(r.Context(), noteKey{}, code)
		next.ServeHTTP(&readStatus{ResponseWriter: w, ctx: ctx, code: code}, r.WithContext(ctx))
	})
}

type readStatus struct {
	http.ResponseWriter
	ctx  context.Context
	code *atomic.Int32 // 0: the storage noted nothing
}

func (w *readStatus) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(w.corrected(code))
}

func (w *readStatus) corrected(code int) int {
	if code != http.StatusInternalServerError {
		return code
	}
	if noted := int(w.code.Load()); noted != 0 {
		return noted
	}
	if err := w.ctx.Err(); err != nil { // it ended in the queue before the storage
		return failureOf(classify(w.ctx, err)).code
	}
	return code
}

// Flush sends what is buffered. The stream of chunks needs it.
func (w *readStatus) Flush() { flush(w.ResponseWriter) }

// flush flushes w if it can. A failed flush shows as a failed write.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
