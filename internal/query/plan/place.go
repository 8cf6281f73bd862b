package plan

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// place is the state of upstream's evaluator at an expression: the times of evaluation, and the
// reference of @ modifiers.
type place struct {
	start, end, step int64 // ms, as the fields of upstream's evaluator
	// base is the time at which upstream last set the offsets of the selectors here
	// (setOffsetForAtModifier). path is the subqueries between that expression and this one, the
	// outermost first.
	base int64
	path []*parser.SubqueryExpr
	// unordered: an operation above does not keep the order of the series, so it does not matter
	// here.
	unordered bool
}

// top returns the place of the whole expression.
func (o Options) top() place {
	if o.Step <= 0 {
		return place{start: o.Start, end: o.Start, step: 1, base: o.Start}
	}
	return place{start: o.Start, end: o.End, step: o.Step, base: o.Start}
}

// grid returns the times of the place. The place must not be empty.
func (p place) grid() Grid {
	return Grid{Start: p.start, Step: p.step, N: int((p.end-p.start)/p.step) + 1}
}

// once returns the place of an expression that upstream evaluates at the first step only, for all
// steps (StepInvariantExpr).
func (p place) once() place {
	p.end = p.start
	return p
}

// within returns the place of a subquery's expression. It may have no steps: end < start.
// Source: evaluator.subqueryTimeRange and runSubquery in upstream's promql/engine.go.
func (p place) within(s *parser.SubqueryExpr, defaultStep time.Duration) place {
	offset := p.offset(s.Timestamp, s.OriginalOffset)
	interval := cmp.Or(s.Step.Milliseconds(), defaultStep.Milliseconds())
	first := p.start - offset - s.Range.Milliseconds()
	start := interval * (first / interval)
	if start <= first {
		start += interval
	}
	in := place{start: start, end: p.grid().End() - offset, step: interval, base: start, unordered: p.unordered}
	if start == p.start {
		in.base = p.base
		in.path = append(append(in.path, p.path...), s)
	}
	return in
}

// empty reports whether the place has no times.
func (p place) empty() bool { return p.end < p.start }

// offset returns the time (ms) from the samples of a selector or subquery, with the given @
// modifier (ms, or nil) and offset, to the evaluation time.
// Source: setOffsetForAtModifier in upstream's promql/engine.go.
func (p place) offset(at *int64, original time.Duration) int64 {
	if at == nil {
		return original.Milliseconds()
	}
	var offset time.Duration
	ts := int64(math.MaxInt64)
	for _, s := range p.path {
		offset += s.OriginalOffset
		if s.Timestamp != nil {
			offset, ts = s.OriginalOffset, *s.Timestamp
		}
	}
	if ts != math.MaxInt64 {
		offset += time.Duration(p.base-ts) * time.Millisecond
	}
	return (original + time.Duration(p.base-*at)*time.Millisecond - offset).Milliseconds()
}
