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
	quietLooks   = 4 // in a row without a merge that say that merging is over
)

// MergeAll has the VictoriaMetrics at root (such as http://127.0.0.1:8428) merge until its samples are in one part for each of their months:
// a forced merge leaves out the parts that another one has at that moment.
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

// awaitMerges returns the number of parts of samples once no merge is under way at several looks in a row: a forced merge begins after its
// request was answered.
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

// merges adds up VictoriaMetrics's counts of merges that run and of parts that hold samples (those of the index aside).
func merges(ctx context.Context, url string) (active, parts float64, err error) {
	all, err := families(ctx, url, "vm_parts", "vm_active_merges")
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
