package process

import (
	"context"
	"fmt"
	"time"
)

// background does its work until it is drained.
type background struct {
	Idle
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when the work has ended
}

// InBackground returns a stage that calls f once the process is ready. The context of f ends when
// the stage is drained; Drain and Close wait until f returns. The name is for errors.
func InBackground(p Parts, name string, f func(context.Context)) Stage {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		select {
		case <-p.Ready:
			f(ctx)
		case <-ctx.Done():
		}
	}()
	return b
}

// Drain implements Stage.
func (b *background) Drain(ctx context.Context) error {
	b.cancel()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end %s: %w", b.name, ctx.Err())
	}
}

// Close implements Stage.
func (b *background) Close() error {
	b.cancel()
	<-b.done
	return nil
}

// Repeat calls f again and again, with pauses in between, until ctx ends.
func Repeat(ctx context.Context, pause time.Duration, f func()) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f()
			t.Reset(pause)
		case <-ctx.Done():
			return
		}
	}
}
