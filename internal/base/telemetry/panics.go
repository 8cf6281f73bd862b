package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// ErrPanic is the error of code that panicked; the log has the value and the stack.
var ErrPanic = errors.New("internal error, see the server's log")

// Recover is deferred. It makes a panic the error ErrPanic, and logs it: where no server recovers,
// a panic ends the process, so code that works on data of requests in a goroutine of its own is
// guarded by it.
func Recover(err *error) {
	if p := recover(); p != nil {
		slog.Error("a goroutine panicked", "panic", p, "stack", string(debug.Stack()))
		*err = ErrPanic
	}
}

// Guard returns f with Recover.
func Guard(f func() error) func() error {
	return func() (err error) {
		defer Recover(&err)
		return f()
	}
}

// Each calls f for every item and its index, at most n at once, and returns the first error, which
// ends the context of the other calls. A panic is ErrPanic.
func Each[T any](ctx context.Context, n int, items []T, f func(ctx context.Context, i int, item T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(n)
	for i, item := range items {
		g.Go(Guard(func() error { return f(ctx, i, item) }))
	}
	return g.Wait()
}
