// Package compactapp connects the compaction stage to a process: its settings, its schedule, and
// one cycle on request.
package compactapp

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/recent"
)

// background compacts until it is drained. It implements process.Stage.
type background struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the last cycle has ended
}

// Background returns the builder of a stage that, once the process is ready, runs one cycle after
// another with a pause of interval between them.
func Background(s Settings, interval time.Duration) process.Builder {
	return Sharing(func(process.Parts) *recent.Segments { return nil }, s, interval)
}

// Sharing is Background for a stage that takes the segments that kept returns from memory.
func Sharing(kept func(process.Parts) *recent.Segments, s Settings, interval time.Duration) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		s.Recent = kept(p)
		c, err := newStage(s, p)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		b := &background{cancel: cancel, done: make(chan struct{})}
		go func() {
			defer close(b.done)
			select {
			case <-p.Ready:
				// The stage logs its errors. The process continues after one: the source objects
				// are still live, and the next cycle plans anew.
				repeat(ctx, interval, func() { _, _ = c.Cycle(ctx) })
			case <-ctx.Done():
			}
		}()
		return b, nil
	}
}

func newStage(s Settings, p process.Parts) (*compact.Stage, error) {
	c, err := compact.New(s.Stage(), p.Store, p.Registry, p.Logger, p.Now)
	if err != nil {
		return nil, fmt.Errorf("start compaction: %w", err)
	}
	return c, nil
}

// repeat calls f again and again, with pauses in between, until ctx ends.
func repeat(ctx context.Context, pause time.Duration, f func()) {
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

// Routes implements process.Stage.
func (*background) Routes() []process.Route { return nil }

// Drain implements process.Stage. It cancels the running cycle, none of whose uncommitted work is
// visible, and waits until the cycle has ended.
func (b *background) Drain(ctx context.Context) error {
	b.cancel()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end compaction: %w", ctx.Err())
	}
}

// Close implements process.Stage.
func (b *background) Close() error {
	b.cancel()
	<-b.done
	return nil
}
