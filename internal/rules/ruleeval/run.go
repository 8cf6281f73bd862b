package ruleeval

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// run is one call of Whole or Window.
type run struct {
	e     *Evaluator
	whole *Memory // nil: none
	to    *Memory

	from     int64          // of the window, ms
	earlier  int            // evaluations before the window for which everything that they read is there
	primed   map[*Rule]bool // rules of which one of these succeeded; nil: not needed
	failures int64          // evaluations that failed in the window
}

// stepper evaluates rules of a part that are of one group and begin at the same time.
type stepper struct {
	upstream *rules.Group
	rules    []*Rule
	at       time.Time // the next evaluation
	last     time.Time
	asking   map[string]*querying // by expression
}

// part evaluates a part for the samples of a span, time after time.
func (r *run) part(ctx context.Context, p *part, s span) error {
	var all []*stepper
	// It refuses what live evaluation refuses. The times of its samples ascend.
	to := storage.Appendable(appender.V1{Appendable: appender.New(r.to.Add)})
	for at := 0; at < len(p.rules); {
		g := &stepper{asking: map[string]*querying{}}
		from := p.rules[at].group
		var made []rules.Rule
		early := r.early(p, p.rules[at])
		for ; at < len(p.rules) && p.rules[at].group == from && r.early(p, p.rules[at]) == early; at++ {
			g.rules = append(g.rules, p.rules[at])
			made = append(made, p.rules[at].make(&r.e.Rules.files))
		}
		start := r.e.Start
		if early {
			start = time.Unix(0, 0)
		}
		g.at, g.last = r.e.times(from, s, start)
		offset := from.QueryOffset()
		for _, rule := range g.rules {
			q := &querying{engine: r.e.Engine, fatal: r.e.Fatal, step: rule.Interval(), last: g.last.Add(-offset), size: maxSteps, ranged: rule.ranged}
			reads := r.e.graph.reads[r.e.graph.place[rule]]
			for other := range reads {
				if r.e.of[r.e.graph.rules[other]] == p {
					q.ranged = false // its samples come time after time
				}
			}
			q.data = r.data(len(reads) > 0)
			g.asking[rule.text] = q
		}
		g.upstream = rules.NewGroup(rules.GroupOptions{
			Name: from.Name(), File: from.File(), Interval: from.Group.Interval(), Limit: from.Limit(), Rules: made, QueryOffset: &offset,
			Opts: &rules.ManagerOptions{
				QueryFunc: r.e.guard.Around(func(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
					return g.query(ctx, expr, t, offset, r.data(true))
				}), Appendable: to, NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Metrics: r.e.metrics,
				Logger: slog.New(slog.DiscardHandler), Context: context.Background(), ExternalURL: r.e.url,
			},
		})
		all = append(all, g)
	}
	defer func() {
		for _, g := range all {
			for _, q := range g.asking {
				q.close()
			}
		}
	}()
	for {
		var next *stepper
		for _, g := range all {
			if !g.at.After(g.last) && (next == nil || g.at.Before(next.at)) {
				next = g
			}
		}
		if next == nil {
			return nil
		}
		if err := r.step(ctx, next); err != nil {
			return err
		}
	}
}

// early reports whether a rule of a part is evaluated before the first evaluation of targets.
func (r *run) early(p *part, rule *Rule) bool {
	return r.e.Anew && !p.whole && !slices.Contains(r.e.Targets, rule)
}

// data returns what a rule reads.
func (r *run) data(others bool) storage.Queryable {
	if !others {
		return r.e.Data
	}
	start := r.e.Start.UnixMilli()
	if r.e.Anew {
		start = math.MinInt64 / 2 // query offsets are subtracted
	}
	l := Layers{before{r.e.Data, r.e.graph.rules, start}, r.to}
	if r.whole != nil {
		l = append(l, r.whole)
	}
	return l
}

// query answers a rule, or the template of an alert.
func (g *stepper) query(ctx context.Context, expr string, t time.Time, offset time.Duration, data storage.Queryable) (promql.Vector, error) {
	q, ok := g.asking[expr]
	if ok && q.ranged {
		if t.After(q.skip) {
			if q.batch == nil || t.After(q.batch.end) {
				if err := q.fetch(ctx, expr, t); err != nil {
					q.failed = err
					return nil, err
				}
			}
			if q.batch != nil && !t.After(q.batch.end) {
				return q.batch.at(t.UnixMilli()), nil
			}
		}
		return q.instant(ctx, expr, t, q.data)
	}
	if ok {
		data = q.data
	} else {
		for _, q = range g.asking { // any of them knows the engine
			break
		}
	}
	return q.instant(ctx, expr, t, upTo{data, t.Add(offset).UnixMilli()})
}

// step evaluates a group once.
func (r *run) step(ctx context.Context, g *stepper) error {
	at := g.at
	g.at = at.Add(g.upstream.Interval())
	f := &r.e.Rules.files
	g.upstream.Eval(ruletemplate.Begin(ctx, &ruletemplate.Evaluation{Rules: g.upstream.Rules(), At: at, ExternalLabels: f.ExternalLabels, Link: f.ExternalURL, URL: r.e.url}), at)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.to.full != nil {
		return r.to.full
	}
	for _, q := range g.asking {
		if q.failed != nil {
			return fmt.Errorf("evaluate %s of group %s at %s: %w", g.rules[0].name, g.upstream.Name(), at.Format(time.RFC3339Nano), q.failed)
		}
	}
	sample := at.Add(-g.upstream.QueryOffset()).UnixMilli()
	inside, complete := sample >= r.from, sample >= r.from-int64(r.earlier)*g.upstream.Interval().Milliseconds()
	for i, rule := range g.upstream.Rules() {
		err := rule.LastError()
		switch {
		case r.primed != nil && !inside:
			r.primed[g.rules[i]] = r.primed[g.rules[i]] || err == nil && complete
		case err != nil:
			r.failures++
			err = fmt.Errorf("%s of group %s at %s: %w", rule.Name(), g.upstream.Name(), at.Format(time.RFC3339Nano), err)
			r.e.failure.CompareAndSwap(nil, &err)
		}
		if a, ok := rule.(*rules.AlertingRule); ok && r.e.Alert != nil {
			r.e.Alert(g.rules[i], a, at)
		}
	}
	if inside && r.e.Done != nil {
		r.e.Done(int64(len(g.rules)))
	}
	return nil
}
