package promapp

import (
	"context"
	"log/slog"
)

// late is a handler that formats the attributes of With when something is logged. Upstream's rule
// groups add the name of a rule to their logger for each evaluation, and hardly ever log.
type late struct {
	slog.Handler // of the logger that the attributes were added to
	attrs        []slog.Attr
}

// WithAttrs implements slog.Handler.
func (h *late) WithAttrs(attrs []slog.Attr) slog.Handler { return &late{h, attrs} }

// WithGroup implements slog.Handler.
func (h *late) WithGroup(name string) slog.Handler { return &late{Handler: h.ready().WithGroup(name)} }

// Handle implements slog.Handler.
func (h *late) Handle(ctx context.Context, r slog.Record) error { return h.ready().Handle(ctx, r) }

// ready returns the handler that has formatted the attributes.
func (h *late) ready() slog.Handler {
	next := h.Handler
	if before, ok := next.(*late); ok {
		next = before.ready()
	}
	if len(h.attrs) == 0 {
		return next
	}
	return next.WithAttrs(h.attrs)
}
