package fetch

import (
	"context"
	"errors"
	"sync"
)

// Flight makes concurrent callers with the same key share one call. The zero value is ready.
type Flight[V any] struct {
	mu    sync.Mutex
	calls map[string]*call[V]
}

// call is running until done is closed. value and err are set before that.
type call[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// Do returns the result of fn, or of the running call for key. If that call failed because its own
// caller's context ended, Do tries again.
func (f *Flight[V]) Do(ctx context.Context, key string, fn func() (V, error)) (V, error) {
	for {
		c, mine := f.join(key)
		if mine {
			f.run(key, c, fn)
			return c.value, c.err
		}
		if err := wait(ctx, c.done); err != nil {
			var none V // that of the call may be written now
			return none, err
		}
		if !contextEnded(c.err) {
			return c.value, c.err
		}
	}
}

// join returns the call for key, and whether the caller must run it.
func (f *Flight[V]) join(key string) (c *call[V], mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[key]; c != nil {
		return c, false
	}
	if f.calls == nil {
		f.calls = map[string]*call[V]{}
	}
	c = &call[V]{done: make(chan struct{})}
	f.calls[key] = c
	return c, true
}

var errPanicked = errors.New("the shared call panicked")

func (f *Flight[V]) run(key string, c *call[V], fn func() (V, error)) {
	c.err = errPanicked
	defer func() {
		f.mu.Lock()
		delete(f.calls, key)
		f.mu.Unlock()
		close(c.done)
	}()
	c.value, c.err = fn()
}

// wait waits for done or for ctx.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// contextEnded reports whether err is the end of a context.
func contextEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
