package peer

import (
	"context"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	mergePoll    = 500 * time.Millisecond
	mergeTimeout = 10 * time.Minute
	quietLooks   = 4 // consecutive polls without a merge that mean the end of merging
)

// MergeAll forces merges of the VictoriaMetrics at root (such as http://127.0.0.1:8428) until each
// month has one part. It repeats them because a forced merge leaves out parts that another merge
// holds.
func MergeAll(ctx context.Context, root string, months int) error {
	ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
	defer cancel()
	for {
		for _, path := range []string{"/internal/force_flush", "/internal/force_merge"} {
			if _, err := Get(ctx, root+path); err != nil {
				return fmt.Errorf("ask for %s: %w", path, err)
			}
		}
		parts, err := awaitMerges(ctx, root+"/metrics")
		if err != nil {
			return err
		}
		if parts <= float64(months) {
			return nil
		}
	}
}

// awaitMerges waits until several consecutive polls find no running merge, and returns the number
// of parts with samples. A forced merge begins after the answer to its request.
func awaitMerges(ctx context.Context, url string) (parts float64, err error) {
	poll := time.NewTicker(mergePoll)
	defer poll.Stop()
	for quiet := 0; quiet < quietLooks; {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for merges, %v parts now: %w", parts, context.Cause(ctx))
		case <-poll.C:
		}
		var active float64
		if active, parts, err = merges(ctx, url); err != nil {
			return 0, fmt.Errorf("read merges under way: %w", err)
		}
		if quiet++; active > 0 {
			quiet = 0
		}
	}
	return parts, nil
}

// merges returns VictoriaMetrics' numbers of running merges and of parts with samples (without the
// index).
func merges(ctx context.Context, url string) (active, parts float64, err error) {
	all, err := Families(ctx, url, "vm_parts", "vm_active_merges")
	if err != nil {
		return 0, 0, err
	}
	for _, name := range []string{"vm_active_merges", "vm_active_force_merges"} {
		active += total(all[name], "")
	}
	return active, total(all["vm_parts"], "storage/"), nil
}

// total adds up the values of a family whose label type begins with prefix.
func total(f *dto.MetricFamily, prefix string) (sum float64) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "type" && !strings.HasPrefix(l.GetValue(), prefix) {
				m = nil
				break
			}
		}
		sum += m.GetUntyped().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}
