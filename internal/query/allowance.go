package query

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/memory"
)

// What upstream's engine allocates.
const (
	bytesPerPoint        = 16   // of a float at a step
	bytesPerSubqueryStep = 48   // points of one series, and statistics of each step
	firstPoints          = 5000 // for which a series has room from its first point on, if there are as many steps
	bytesPerSeries       = 128  // of a result, beside its labels
	bytesPerAnswer       = 64   // of a point as JSON, in two buffers
	heldPerStep          = 10   // steps in windows for each step that subqueries may have: a second of upstream's time
)

// allowance is what the intermediate results of one query may take. What grows with the data is counted when the data's series are known: before any
// of it is evaluated.
type allowance struct {
	settings *Settings
	growth   growth
	steps    int64 // of one expression of the query, at most
	grown    atomic.Int64
}

type allowanceKey struct{}

// allow refuses the query if what it takes without looking at any data is too much, and returns the context that counts the rest.
func (q *pushedQuery) allow(ctx context.Context) (context.Context, error) {
	if q.stmt == nil {
		return ctx, nil
	}
	s := &q.engine.stage.settings
	c := countSteps(&q.asked)
	if limit := s.MaxSubquerySteps; c.steps > limit {
		return ctx, &LimitError{Limit: "steps of subqueries", Value: limit, Needed: c.steps, Flag: subqueryFlag}
	}
	a := &allowance{settings: s, growth: growthOf(q.asked.Expr), steps: c.most}
	if err := a.add(ctx, 1, 0); err != nil { // a query without data has series as well
		return ctx, err
	}
	if err := memory.Of(ctx).Charge(c.steps * bytesPerSubqueryStep); err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, allowanceKey{}, a), nil
}

// walkable refuses what is left to upstream's engine if it would walk through too many steps of subqueries: it does not look whether anybody still
// waits while it does so for one series.
func (q *pushedQuery) walkable() error {
	if q.stmt == nil {
		return nil
	}
	if limit, c := heldPerStep*q.engine.stage.settings.MaxSubquerySteps, countSteps(q.stmt); c.held > limit {
		return &LimitError{
			Limit: "steps in all windows of subqueries", Value: limit, Needed: c.held, Flag: subqueryFlag, advice: "of which it is the tenfold",
		}
	}
	return nil
}

const subqueryFlag = "--query.max-subquery-steps"

// add counts what the query makes of n more series, whose labels' values have at most longest bytes each.
func (a *allowance) add(ctx context.Context, n, longest int) error {
	more := a.growth.bytes(n, longest, a.steps)
	if more == 0 {
		return nil
	}
	if limit, grown := a.settings.QueryMemoryBytes, a.grown.Add(min(more, 1<<60)); grown > limit || grown < 0 {
		return &LimitError{Limit: "bytes of labels that functions add per query", Value: limit, Needed: max(more, grown), Flag: memoryFlag}
	}
	return memory.Of(ctx).Charge(more)
}

// found counts the labels of the series that a selector of ctx's query, or another read, has found.
func found[S any](ctx context.Context, series []S, of func(S) labels.Labels) error {
	work := memory.Of(ctx)
	if work == nil {
		return nil
	}
	total := int64(len(series)) * bytesPerSeries
	for _, s := range series {
		total += int64(of(s).ByteSize())
	}
	return work.Charge(total)
}

// grown counts the labels that ctx's query adds to the series of one of its selectors.
func grown[S any](ctx context.Context, series []S, of func(S) labels.Labels) error {
	a, _ := ctx.Value(allowanceKey{}).(*allowance)
	if a == nil || a.growth.added == (size{}) {
		return nil
	}
	longest := 0
	for _, s := range series {
		of(s).Range(func(l labels.Label) { longest = max(longest, len(l.Value)) })
	}
	return a.add(ctx, len(series), longest)
}

// evaluated counts what the engine allocates for the results of n series before it looks whether they are too many.
func evaluated(ctx context.Context, n int) error {
	if a, _ := ctx.Value(allowanceKey{}).(*allowance); a != nil {
		return memory.Of(ctx).Charge(int64(n) * min(a.steps, firstPoints) * bytesPerPoint)
	}
	return nil
}

// answered counts the text that the API makes of a result.
func answered(ctx context.Context, res *promql.Result) error {
	var n int64
	series := func(l labels.Labels, points int) { n += 2*int64(l.ByteSize()) + bytesPerAnswer*int64(points) }
	switch v := res.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			series(s.Metric, len(s.Floats)+len(s.Histograms))
		}
	case promql.Vector:
		for _, s := range v {
			series(s.Metric, 1)
		}
	}
	return memory.Of(ctx).Charge(n)
}
