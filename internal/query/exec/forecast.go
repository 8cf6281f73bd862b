package exec

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// afford refuses a query that cannot be answered within its time or its memory, before any of its
// samples are read. A query that passes may still fail: all estimates are the lowest possible.
func (p *Attempt) afford(ctx context.Context, pl *plan.Plan, planned *plan.Query) error {
	for _, s := range pl.Pushed {
		err := p.HoldValues(s)
		for shrink := int64(1); err != nil && shrink <= maxShrink; shrink *= shrinkStep {
			parts, _, ok := s.Partition(p.MaxRows(s, shrink))
			if !ok {
				continue
			}
			err = nil
			for _, part := range parts {
				if err = p.HoldValues(part); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	kept := int64(0) // samples that the engine reads
	for _, sel := range Kept(pl, planned) {
		// Rows at the ends of the range are estimated.
		rows := p.Resolution(sel.Expr).Samples
		if rows/5*4 > int64(p.Settings.MaxSamples) {
			return request.TooManySamples(p.Settings.MaxSamples, rows)
		}
		kept += rows
	}
	// First the bytes that are not cached are fetched, then all threads evaluate the samples.
	// These are counted first as if no rollup stood for any, and exactly only if that takes too
	// long. The bytes of rollups, which are few, are left out.
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline)
	if !ok || left <= 0 { // an ended query fails elsewhere
		return nil
	}
	var leaves []*plan.Leaf
	var all source.Fetch
	count := kept
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			leaves = append(leaves, l)
			count += l.Resolution.Rows
			if r := p.reads[l]; r != nil {
				all.Add(r.Files)
			}
		}
	}
	for _, r := range p.raw {
		all.Add(r.Files)
	}
	_, fetched := all.Cost()
	s := &p.Settings
	least := func() time.Duration {
		seconds := float64(fetched)/float64(s.FetchBytesPerSecond) + float64(count)/float64(s.SamplesPerSecond)/float64(s.Threads)
		return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
	}
	if least() <= left {
		return nil
	}
	count = kept
	for _, l := range leaves {
		r, err := p.ReadOf(ctx, l)
		if err != nil {
			return err
		}
		mint, maxt := r.times()
		for _, w := range r.wanted {
			count += r.Rolled.Estimate(r.Res, w, mint, maxt)
		}
	}
	needed := least()
	if needed <= left {
		return nil
	}
	return &request.LimitError{
		Limit: "seconds that are left to it", Value: int64(left.Seconds()), Needed: int64(math.Ceil(needed.Seconds())), Flag: "--query.timeout",
		Details: fmt.Sprintf("at least: %d bytes to fetch (--query.fetch-bytes-per-second) and %d samples to evaluate (--query.samples-per-second)", fetched, count),
		Advice:  "a function's timeout and, for more processors, its memory; its URL waits longer than an HTTP API, and promlake query as long as it is told",
	}
}
