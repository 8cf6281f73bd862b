package process

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/promlake/promlake/internal/aws/lambda"
)

// requestKey is the attribute by which CloudWatch and Lambda's own JSON lines name an invocation.
const requestKey = "requestId"

// currentRequest is the ID of the current invocation, if there can be only one at a time. Lines
// that are logged without the invocation's context get this ID too.
type currentRequest struct{ id atomic.Pointer[string] }

func (c *currentRequest) enter(ctx context.Context) {
	if i, ok := lambda.Current(ctx); ok && lambda.Concurrency() == 1 {
		c.id.Store(&i.ID)
	}
}

func (c *currentRequest) leave() { c.id.Store(nil) }

// requestHandler adds the invocation's id to each line.
type requestHandler struct {
	slog.Handler
	current *currentRequest
}

// Handle implements slog.Handler.
func (h requestHandler) Handle(ctx context.Context, r slog.Record) error {
	id := ""
	if i, ok := lambda.Current(ctx); ok {
		id = i.ID
	} else if p := h.current.id.Load(); p != nil {
		id = *p
	}
	if id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String(requestKey, id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h requestHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(as), h.current}
}

// WithGroup implements slog.Handler.
func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name), h.current}
}
