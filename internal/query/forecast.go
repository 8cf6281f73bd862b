package query

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// forecast is what the samples of a planned query take.
type forecast struct {
	fetched int64 // bytes that come from the store: not those that are cached
	samples int64 // that are evaluated, or stand for others that are not
}

// least is the shortest time that a forecast can come true in: first the bytes come, then the samples are evaluated by all threads.
func (s *executorSettings) least(f forecast) time.Duration {
	seconds := float64(f.fetched)/float64(s.fetchBytesPerSecond) + float64(f.samples)/float64(s.samplesPerSecond)/float64(s.threads)
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
}

// outlives returns the error of a query that takes at least needed, and has left.
func (*executorSettings) outlives(f forecast, left, needed time.Duration) error {
	return &request.LimitError{
		Limit: "seconds that are left to it", Value: int64(left.Seconds()), Needed: int64(math.Ceil(needed.Seconds())), Flag: "--query.timeout",
		Details: fmt.Sprintf("at least: %d bytes to fetch (--query.fetch-bytes-per-second) and %d samples to evaluate (--query.samples-per-second)", f.fetched, f.samples),
		Advice:  "a function's timeout and, for more processors, its memory; its URL waits longer than an HTTP API, and promlake query as long as it is told",
	}
}

// afford refuses a query that cannot be answered within its time or its memory. Nothing of its samples has been read. What it lets pass may fail yet:
// it takes all for as fast, and as small, as it can be.
func (p *pushing) afford(ctx context.Context, pl *plan.Plan, planned *plan.Query) error {
	for _, s := range pl.Pushed {
		if err := p.fits(s); err != nil {
			return err
		}
	}
	for _, sel := range kept(pl, planned) {
		// Rows at the ends of the range are estimated.
		if rows := p.resolved[sel.Expr].Samples; rows/5*4 > int64(p.settings.maxSamples) {
			return request.TooManySamples(p.settings.maxSamples, rows)
		}
	}
	return p.inTime(ctx, pl, planned)
}

// fits says whether the values of a subtree's leaves fit into the memory of a query, in parts if it has any.
func (p *pushing) fits(s *plan.Pushed) error {
	err := p.holdValues(s.Leaves)
	for shrink := int64(1); err != nil && shrink <= maxShrink; shrink *= shrinkStep {
		parts, _, ok := s.Partition((&runner{pushing: p, shrink: shrink}).maxRows(s))
		if !ok {
			continue
		}
		err = nil
		for _, part := range parts {
			if err = p.holdValues(part.Leaves); err != nil {
				break
			}
		}
	}
	return err
}

// inTime says whether the query can be answered before ctx ends.
func (p *pushing) inTime(ctx context.Context, pl *plan.Plan, planned *plan.Query) error {
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline)
	if !ok || left <= 0 { // what finds it ended says so
		return nil
	}
	s, f := &p.settings, p.atMost(pl, planned)
	if s.least(f) <= left {
		return nil
	}
	if err := p.refine(ctx, &f, pl, planned); err != nil {
		return err
	}
	if needed := s.least(f); needed > left {
		return s.outlives(f, left, needed)
	}
	return nil
}

// atMost is the forecast if no rollup stands for samples. What is read of rollups themselves, which is little, is left out.
func (p *pushing) atMost(pl *plan.Plan, planned *plan.Query) (f forecast) {
	var all source.Fetch
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			f.samples += l.Resolution.Rows
			if r := p.reads[l]; r != nil {
				all.Add(r.files)
			}
		}
	}
	for _, r := range p.raw {
		all.Add(r.files)
	}
	f.samples += p.keptSamples(pl, planned)
	_, f.fetched = all.Cost()
	return f
}

// refine counts the samples of a forecast again, with a rollup's stand-ins instead of the samples that they stand for.
func (p *pushing) refine(ctx context.Context, f *forecast, pl *plan.Plan, planned *plan.Query) error {
	f.samples = p.keptSamples(pl, planned)
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			r, err := p.readOf(ctx, l)
			if err != nil {
				return err
			}
			for _, w := range r.wanted {
				f.samples += r.rolled.Estimate(r.res, w, r.whole.MinT, r.whole.MaxT)
			}
		}
	}
	return nil
}

// keptSamples is how many samples the engine reads.
func (p *pushing) keptSamples(pl *plan.Plan, planned *plan.Query) (n int64) {
	for _, sel := range kept(pl, planned) {
		n += p.resolved[sel.Expr].Samples
	}
	return n
}
