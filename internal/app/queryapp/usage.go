package queryapp

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/query/usage"
)

// keptUsage lets a process save what its queries ask for. nil saves nothing.
type keptUsage struct {
	counter *usage.Counter
	stop    context.CancelFunc
	done    chan struct{} // closed when nothing is saved at intervals any more
}

// keepUsage begins to save at intervals. A function saves after requests instead, because Lambda
// stops it between them.
func keepUsage(s Settings, c *usage.Counter) *keptUsage {
	if s.Query.UsageInterval == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &keptUsage{c, cancel, make(chan struct{})}
	go func() {
		defer close(k.done)
		if !s.function {
			c.Run(ctx)
		}
	}()
	return k
}

// lastSave is the longest time that the save at the end takes: other stages end after this one.
const lastSave = 2 * time.Second

// end saves for the last time, in at most half of the time that ctx leaves.
func (k *keptUsage) end(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.stop()
	select {
	case <-k.done:
		pause := lastSave
		if end, ok := ctx.Deadline(); ok {
			pause = min(pause, time.Until(end)/2)
		}
		ctx, cancel := context.WithTimeout(ctx, pause)
		defer cancel()
		k.counter.Save(ctx)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("save what queries asked for: %w", ctx.Err())
	}
}
