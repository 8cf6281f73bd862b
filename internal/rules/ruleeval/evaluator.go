package ruleeval

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Options say what is evaluated, over what.
type Options struct {
	Rules   *Rules
	Targets []*Rule
	// Producers are the rules whose results are computed if a target reads them. What others write
	// is read from Data.
	Producers []*Rule

	Data   storage.Queryable
	Engine promql.QueryEngine
	// Fatal reports whether an error of a query says nothing about the rule, such as a limit or a
	// store that is away. It ends the evaluation. Other errors fail the rule at this time, as they
	// do live.
	Fatal func(error) bool

	Start, End time.Time // of evaluations of targets, inclusive
	// Anew evaluates what targets read before Start, too, instead of reading it from Data.
	Anew        bool
	MemoryBytes int64 // for the results of one call
	// MemoryAdvice says what to do if that is too little.
	MemoryAdvice string

	// Done is told how many evaluations of rules were done. nil: nobody.
	Done func(n int64)
	// Alert is called after each evaluation of a target that is an alerting rule. nil: nobody.
	Alert func(r *Rule, state *rules.AlertingRule, at time.Time)
}

// Evaluator evaluates the targets and what they read. It is safe for concurrent use.
type Evaluator struct {
	Options
	graph   *graph
	parts   []*part
	of      map[*Rule]*part
	metrics *rules.Metrics
	guard   *ruletemplate.Guard
	url     *url.URL

	failures atomic.Int64
	failure  atomic.Pointer[error]
}

// New returns an evaluator.
func New(o Options) (*Evaluator, error) {
	g := &graph{place: map[*Rule]int{}}
	add := func(r *Rule) int {
		i, ok := g.place[r]
		if !ok {
			i = len(g.rules)
			g.place[r] = i
			g.rules, g.reads = append(g.rules, r), append(g.reads, map[int]time.Duration{})
		}
		return i
	}
	for _, r := range o.Targets {
		add(r)
	}
	for i := 0; i < len(g.rules); i++ { // g.rules grows
		for _, x := range g.rules[i].reads {
			for _, p := range o.Producers {
				if p.writes(x.matchers) {
					at := add(p)
					g.reads[i][at] = max(g.reads[i][at], x.reach)
				}
			}
		}
	}
	e := &Evaluator{Options: o, graph: g, of: map[*Rule]*part{}, metrics: rules.NewGroupMetrics(nil), guard: ruletemplate.NewGuard(ruletemplate.Limits{}, nil)}
	var err error
	if e.url, err = url.Parse(o.Rules.files.ExternalURL); err != nil {
		return nil, fmt.Errorf("external URL: %w", err)
	}
	e.parts = e.graph.parts()
	for _, p := range e.parts {
		for _, r := range p.rules {
			e.of[r] = p
		}
	}
	return e, nil
}

// Failures returns how many evaluations of rules failed as they would have live, and one of the
// errors.
func (e *Evaluator) Failures() (n int64, one error) {
	if err := e.failure.Load(); err != nil {
		one = *err
	}
	return e.failures.Load(), one
}

// Evaluations returns the number of evaluations of targets whose samples are in [from, to) (ms).
func (e *Evaluator) Evaluations(from, to int64) (n int64) {
	for _, r := range e.Targets {
		at, end := e.times(r.group, span{from, to}, e.Start)
		if !at.After(end) {
			n += int64(end.Sub(at)/r.Interval()) + 1
		}
	}
	return n
}

// Bounds returns the times of the first and of the last sample (ms) that targets may write.
func (e *Evaluator) Bounds() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for _, r := range e.Targets {
		offset := r.group.QueryOffset()
		first, last = min(first, e.Start.Add(-offset).UnixMilli()), max(last, e.End.Add(-offset).UnixMilli())
	}
	return first, last
}

// Earliest returns the time (ms) from which on the results in [from, to) depend on results of
// rules.
func (e *Evaluator) Earliest(from, to int64) int64 {
	earliest := from
	for p, s := range e.needs(span{from, to}, 1) {
		if p.whole {
			return math.MinInt64
		}
		earliest = min(earliest, s.from)
	}
	return earliest
}

// span are the times [from, to) (ms) of samples.
type span struct{ from, to int64 }

// times returns the first time of evaluations of a group, from start on, whose samples are in a
// span, and a time that none exceeds.
func (e *Evaluator) times(g *group, s span, start time.Time) (first, last time.Time) {
	offset := g.QueryOffset()
	from, to := start, e.End
	if s.from > math.MinInt64 {
		if t := time.UnixMilli(s.from).Add(offset); t.After(from) {
			from = t
		}
	}
	if t := time.UnixMilli(s.to).Add(offset - 1); t.Before(to) {
		to = t
	}
	return g.first(from), to
}

// everything is the span of all evaluations.
var everything = span{math.MinInt64, math.MaxInt64 / int64(time.Millisecond)}

// Whole evaluates what must be evaluated from the beginning. It returns nil if nothing must.
func (e *Evaluator) Whole(ctx context.Context) (*Memory, error) {
	r := &run{e: e, to: NewMemory(e.MemoryBytes, e.MemoryAdvice)}
	some := false
	for _, p := range e.parts {
		if p.whole {
			some = true
			if err := r.part(ctx, p, everything); err != nil {
				return nil, err
			}
		}
	}
	if !some {
		return nil, nil
	}
	e.failures.Add(r.failures)
	return r.to, nil
}

// Window returns what the targets write with times in [from, to) (ms), except those that are in
// whole; it may have samples at other times and of other rules. A target's first evaluation in the
// window marks the series stale that its last one before it wrote. So the window begins with
// earlier evaluations, with the more the longer they fail.
func (e *Evaluator) Window(ctx context.Context, whole *Memory, from, to int64) (*Memory, error) {
	for earlier := 1; ; earlier *= 2 {
		r := &run{e: e, to: NewMemory(e.MemoryBytes, e.MemoryAdvice), whole: whole, from: from, earlier: earlier, primed: map[*Rule]bool{}}
		needs := e.needs(span{from, to}, earlier)
		for _, p := range e.parts {
			if s, ok := needs[p]; ok && !p.whole {
				if err := r.part(ctx, p, s); err != nil {
					return nil, err
				}
			}
		}
		again := slices.ContainsFunc(e.Targets, func(t *Rule) bool {
			first, _ := e.times(t.group, span{from, to}, e.Start)
			return !e.of[t].whole && !r.primed[t] && first.Add(-time.Duration(earlier)*t.Interval()).Add(-t.Interval()).After(e.Start)
		})
		if !again {
			e.failures.Add(r.failures)
			return r.to, nil
		}
	}
}

// needs returns the times for which each part is to be evaluated.
func (e *Evaluator) needs(window span, earlier int) map[*part]span {
	out := map[*part]span{}
	widen := func(p *part, s span) {
		if old, ok := out[p]; ok {
			s = span{min(s.from, old.from), max(s.to, old.to)}
		}
		out[p] = s
	}
	for _, t := range e.Targets {
		widen(e.of[t], span{window.from - int64(earlier)*t.Interval().Milliseconds(), window.to})
	}
	for _, p := range slices.Backward(e.parts) { // the readers first
		s, ok := out[p]
		if !ok || p.whole { // what a whole part reads is whole
			continue
		}
		var within time.Duration // how far the rules of the part reach through each other
		each := func(visit func(r *Rule, other *part, reach time.Duration)) {
			for _, r := range p.rules {
				for at, reach := range e.graph.reads[e.graph.place[r]] {
					visit(r, e.of[e.graph.rules[at]], reach+r.Interval())
				}
			}
		}
		each(func(_ *Rule, other *part, reach time.Duration) {
			if other == p {
				within += reach
			}
		})
		// Another rule of the part may have written a series with a later time, because of which a
		// sample of an evaluation so long before is refused.
		var offset, interval time.Duration
		for i, a := range p.rules {
			if slices.ContainsFunc(p.rules[:i], func(b *Rule) bool { return sameSeries(a, b) }) {
				for _, r := range p.rules {
					offset, interval = max(offset, r.group.QueryOffset()), max(interval, r.Interval())
				}
			}
		}
		s.from -= (within + 2*(offset+interval)).Milliseconds()
		if len(p.rules) > 1 { // what others of the part write before the last evaluation
			for _, r := range p.rules {
				s.to = max(s.to, out[p].to+r.group.QueryOffset().Milliseconds())
			}
		}
		out[p] = s
		each(func(r *Rule, other *part, reach time.Duration) {
			if other != p && !other.whole {
				widen(other, span{s.from - reach.Milliseconds(), s.to + r.group.QueryOffset().Milliseconds() + 1})
			}
		})
	}
	return out
}
