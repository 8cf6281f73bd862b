package engine

import (
	"cmp"
	"context"
	"sort"
	"sync"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/request"
)

// whole returns the result that is the answer of the query, nil if upstream's engine is to evaluate
// the expression that is left: it is more than the selector of a pushed subtree at the query's
// times, or statistics of each step are asked for.
func (q *Query) whole(left parser.Expr, all results) *exec.Result {
	sel, ok := left.(*parser.VectorSelector)
	if !ok || sel.Timestamp != nil || q.stats.Samples.StepTrackingEnabled() {
		return nil
	}
	for _, m := range sel.LabelMatchers {
		if r := all.of(m); r != nil && r.Grid.Start == timestamp.FromTime(q.asked.Start) {
			return r
		}
	}
	return nil
}

// answer is what upstream's engine returns for a selector of the series of a result, and counts in
// its metrics.
func (q *Query) answer(ctx context.Context, r *exec.Result) *promql.Result {
	if err := cmp.Or(ctx.Err(), request.Evaluated(ctx, r.Len(), nil)); err != nil {
		return &promql.Result{Err: err}
	}
	res, n := &promql.Result{}, 0
	res.Warnings.Merge(r.Warnings)
	if q.asked.Interval > 0 {
		p, ok := points.Get().(*[]promql.FPoint)
		if n := r.Values(); !ok || cap(*p) < n {
			all := make([]promql.FPoint, 0, n)
			p = &all
		}
		q.points = p
		m, points := r.Append(make(promql.Matrix, 0, r.Len()), (*q.points)[:0])
		sorting := q.stats.Timers.GetTimer(stats.ResultSortTime).Start()
		sort.Sort(m)
		sorting.Stop()
		res.Value, n = m, len(points)
	} else {
		v := r.Vector()
		res.Value, n = v, len(v)
	}
	request.From(ctx).Quote.Touch(0, -n)
	samples := q.stats.Samples
	samples.TotalSamples += int64(n)
	samples.SamplesRead += int64(n)
	samples.UpdatePeak(n)
	q.engine.measured.query(&q.stats, q.asked.Interval > 0)
	return res
}

// points is memory for the points of answers.
var points sync.Pool

// mostPoints is the largest number of points whose memory is used again.
const mostPoints = 64 << 10

// Close implements promql.Query.
func (q *Query) Close() {
	if p := q.points; p != nil && cap(*p) <= mostPoints {
		points.Put(p)
	}
	q.points = nil
	if q.up != nil {
		q.up.Close()
	}
}
