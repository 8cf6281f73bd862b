package peer

import (
	"context"
	"fmt"
	"time"
)

const (
	headPoll    = time.Second
	headTimeout = 20 * time.Minute
	headSpan    = 3 * time.Hour // a shorter head stays a head: one and a half times the chunk range
)

// AwaitBlocks waits until the Prometheus at root has moved all but its newest samples to blocks and
// merged these: until its head is short and several consecutive polls find no compaction.
func AwaitBlocks(ctx context.Context, root string) error {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	poll := time.NewTicker(headPoll)
	defer poll.Stop()
	var last, span float64
	for quiet := 0; quiet < quietLooks; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for blocks, the head spans %v s: %w", span, context.Cause(ctx))
		case <-poll.C:
		}
		var done float64
		var err error
		if span, done, err = head(ctx, root+"/metrics"); err != nil {
			return fmt.Errorf("read the state of the head: %w", err)
		}
		if quiet++; span > headSpan.Seconds() || done != last {
			quiet = 0
		}
		last = done
	}
	return nil
}

// head returns the seconds that Prometheus's head spans and the number of compactions so far.
func head(ctx context.Context, url string) (span, compactions float64, err error) {
	const from, to, done = "prometheus_tsdb_head_min_time_seconds", "prometheus_tsdb_head_max_time_seconds", "prometheus_tsdb_compactions_total"
	all, err := Families(ctx, url, from, to, done)
	if err != nil {
		return 0, 0, err
	}
	value := func(name string) float64 {
		m := all[name].GetMetric()[0]
		return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return value(to) - value(from), value(done), nil
}
