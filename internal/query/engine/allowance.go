package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/request"
)

// Bytes that upstream's engine and API allocate, and its limit.
const (
	bytesPerSubqueryStep = 48 // points of one series, and statistics of each step
	bytesPerAnswer       = 64 // of a point as JSON, in two buffers
	heldPerStep          = 10 // steps in windows for each step that subqueries may have: a second of upstream's time
)

// allow refuses a query that takes too much whatever the data is, and returns the budget of what
// grows with the data.
func (q *Query) allow(ctx context.Context) (*request.ResultBudget, error) {
	s := &q.engine.settings
	c := q.steps()
	if limit := s.MaxSubquerySteps; c.steps > limit {
		return nil, &request.LimitError{Limit: "steps of subqueries", Value: limit, Needed: c.steps, Flag: subqueryFlag}
	}
	b := request.NewResultBudget(s.QueryMemoryBytes, q.expr.growth, c.most)
	if err := b.Add(ctx, 1, 0); err != nil { // a query without data has series as well
		return nil, err
	}
	return b, memory.Of(ctx).Charge(c.steps * bytesPerSubqueryStep)
}

// steps is what countSteps returns of the query.
func (q *Query) steps() stepCount {
	if q.expr.settled { // it has no subqueries
		return stepCount{most: timesOf(&q.asked)}
	}
	return countSteps(&q.asked)
}

// walkable refuses what is left to upstream's engine if its windows hold too many steps of
// subqueries: for one series, upstream walks through all of them without checking whether the query
// has ended.
func (q *Query) walkable() error {
	stmt := q.asked
	if q.left != nil {
		stmt.Expr = q.left
	}
	if limit, c := heldPerStep*q.engine.settings.MaxSubquerySteps, countSteps(&stmt); c.held > limit {
		return &request.LimitError{
			Limit: "steps in all windows of subqueries", Value: limit, Needed: c.held, Flag: subqueryFlag, Advice: "of which it is the tenfold",
		}
	}
	return nil
}

const subqueryFlag = "--query.max-subquery-steps"

// answered charges the text that the API makes of a result.
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
