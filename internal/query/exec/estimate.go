package exec

import (
	"context"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Price returns what a planned query takes from the store, as things are cached now, and its
// estimate, without reading a sample. Series and samples are counted as Prometheus' engine counts
// what it reads. They are upper bounds if the samples of each series are in no object more than
// denser times as dense as on average, and the histograms not larger than histogramUnits. Time and
// dollars of a function are 0 in a directory.
func (p *Attempt) Price(ctx context.Context, pl *plan.Plan, planned *plan.Query) (c source.Cost, e request.Estimate, err error) {
	if !p.Files.Local() {
		c.Add(source.Snapshot())
	}
	all := &source.Usage{}
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			if _, err := p.Take(ctx, l, all); err != nil {
				return c, e, err
			}
		}
	}
	for _, sel := range Kept(pl, planned) {
		p.RawReadOf(ctx, sel, p.Resolution(sel.Expr)).addTo(all)
	}
	var n float64
	for _, sel := range slices.Concat(planned.Selectors(), planned.Others()) {
		if err := ctx.Err(); err != nil {
			return c, e, err
		}
		r := p.Resolution(sel.Expr)
		if r == nil { // one of the others
			mint, maxt := p.Span.Clip(sel.MinT, sel.MaxT)
			m, err := p.Series.Match(ctx, *p.Snap, p.Wide, mint, maxt, sel.Matchers)
			if err != nil {
				return c, e, err
			}
			r = m.Resolution()
			p.RawReadOf(ctx, sel, r).addTo(all)
		}
		e.SeriesTouched += int64(len(r.Series))
		n += samplesOf(sel, r)
	}
	c.Add(all.Cost())
	e.SamplesRead, e.Bytes, e.Requests = request.Saturated(n), c.Bytes, int64(c.Lists+c.Gets)
	if !p.Files.Local() {
		e.FunctionMilliseconds, e.Dollars = c.Function(n)
		e.Dollars += c.Dollars
	}
	return c, e, nil
}

// Take plans the read of a leaf, and adds what it takes.
func (p *Attempt) Take(ctx context.Context, l *plan.Leaf, to *source.Usage) (*Input, error) {
	r, err := p.ReadOf(ctx, l)
	if err == nil && r.Whole != nil {
		r.PlanFiles(ctx)
		if err = r.Open(ctx); err == nil {
			r.addTo(to)
		}
	}
	return r, err
}

// addTo adds what the read takes.
func (s *Input) addTo(u *source.Usage) {
	u.Parts(s.Files)
	u.Parts(s.Rollups)
	for i, members := range s.Whole.Rows {
		if o := &s.Res.Objects[i]; !o.IsBlock() && len(members) > 0 {
			u.Segment(o.Series, o.Size)
		}
	}
}

const (
	// denser is how much denser than on average samples may lie in the part of an object that is
	// read: targets that were down for a part of its time leave gaps.
	denser = 1.5
	// histogramUnits is what a native histogram of 60 buckets counts in Prometheus' engine, and
	// statsUnits what one counts of which no buckets are needed.
	histogramUnits, statsUnits = 42, 11
)

// samplesOf is the number of samples that the engine reads of the series of a selector, at most.
func samplesOf(sel plan.Selector, r *lookup.Resolution) (n float64) {
	units := 1.0 // of a histogram
	if r.HasHists {
		if units = histogramUnits; sel.Expr != nil && sel.Expr.SkipHistogramBuckets {
			units = statsUnits
		}
	}
	for i := range r.Series {
		s := &r.Series[i]
		first, last, count, most := int64(math.MaxInt64), int64(math.MinInt64), 0.0, 1.0
		for _, at := range s.At {
			t := r.Tables[at.Object]
			from, upto := t.Times(int(at.Row))
			_, floats := t.Floats(int(at.Row))
			hists := r.Hists(at)
			lo, hi := max(from, sel.MinT), min(upto, sel.MaxT)
			if r.HeadFrom > 0 {
				hi = min(hi, r.HeadFrom-1)
			}
			if lo > hi || floats+hists == 0 {
				continue
			}
			weight := (float64(floats) + units*float64(hists)) / float64(floats+hists)
			first, last, most = min(first, lo), max(last, hi), max(most, weight)
			length, windows := float64(hi-lo), 1.0
			if step := sel.Times.Step; sel.Range < step { // samples between the windows are not read
				windows = min(float64(sel.Times.N), length/float64(step)+2)
				length = min(length, windows*float64(sel.Range))
			}
			even := float64(floats+hists-1) * length / max(1, float64(upto-from))
			count += weight * min(float64(floats+hists), windows+denser*even)
		}
		if s.Head != nil {
			if t, _ := s.Head.Between(sel.MinT, sel.MaxT); len(t) > 0 {
				first, last, count = min(first, t[0]), max(last, t[len(t)-1]), count+float64(len(t))
			}
		}
		if sel.Range == 0 && first <= last { // one at each time from the first to the lookback after the last
			lookback, step := sel.Times.Start-sel.MinT+1, sel.Times.Step
			from := max(0, (first-sel.Times.Start+step-1)/step)
			upto := min(int64(sel.Times.N)-1, (last+lookback-1-sel.Times.Start)/step)
			count = most * float64(max(0, upto-from+1))
		}
		n += count
	}
	return n
}
