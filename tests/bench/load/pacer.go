package load

import (
	"context"
	"sync/atomic"
	"time"
)

// pacer spreads samples evenly over time. It is safe for concurrent use.
type pacer struct {
	rate     float64 // samples/s; 0 = no waiting
	begin    time.Time
	now      func() time.Time
	reserved atomic.Int64 // samples
}

// due reserves n samples, and returns when their request may start, counted from begin.
func (p *pacer) due(n int) time.Duration {
	before := p.reserved.Add(int64(n)) - int64(n)
	if p.rate == 0 {
		return 0
	}
	return time.Duration(float64(before) / p.rate * float64(time.Second))
}

// wait blocks until a request of n samples may be sent; it returns false if ctx ends before that.
func (p *pacer) wait(ctx context.Context, n int) bool {
	return sleep(ctx, p.due(n)-p.now().Sub(p.begin))
}

// sleep blocks for d, or not at all if d ≤ 0, and returns false if ctx ends before that.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
