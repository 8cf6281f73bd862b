package ruleeval

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

// querying answers the queries of one rule, whose times ascend.
type querying struct {
	engine promql.QueryEngine
	data   storage.Queryable
	fatal  func(error) bool
	failed error // the query that could not be answered; the evaluation must end

	ranged bool          // answer from range queries
	step   time.Duration // between two queries
	last   time.Time     // of the last query
	size   int           // steps of a range query
	batch  *batch
	skip   time.Time // until then, range queries fail
}

// maxSteps is the number of steps of one range query.
const maxSteps = 480

// instant answers one instant query.
func (q *querying) instant(ctx context.Context, expr string, at time.Time, data storage.Queryable) (promql.Vector, error) {
	v, err := rules.EngineQueryFunc(q.engine, data)(ctx, expr, at)
	if err != nil && q.fatal(err) {
		q.failed = err
	}
	return v, err
}

// fetch asks for the results from a time on, in fewer steps if there is an error: an instant query
// then shows whether it is one of this time.
func (q *querying) fetch(ctx context.Context, expr string, at time.Time) error {
	q.close()
	n := min(q.size, int(q.last.Sub(at)/q.step)+1)
	for ; n > 1; n /= 2 {
		end := at.Add(time.Duration(n-1) * q.step)
		b, err := q.fetchRange(ctx, expr, at, end)
		if err == nil {
			q.batch = b
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if q.fatal(err) { // a limit, perhaps
			q.size = max(n/2, 1)
		}
	}
	q.skip = at
	return nil
}

func (q *querying) fetchRange(ctx context.Context, expr string, from, to time.Time) (*batch, error) {
	query, err := q.engine.NewRangeQuery(ctx, q.data, nil, expr, from, to, q.step)
	if err != nil {
		return nil, err
	}
	res := query.Exec(ctx)
	m, err := res.Matrix()
	if err != nil {
		query.Close()
		return nil, err
	}
	return &batch{query: query, end: to, matrix: m, floats: make([]int, len(m)), hists: make([]int, len(m))}, nil
}

// close releases the results that are held.
func (q *querying) close() {
	if q.batch != nil {
		q.batch.query.Close()
		q.batch = nil
	}
}

// batch is the result of a range query, read in the order of time. Its memory is the query's.
type batch struct {
	query         promql.Query
	end           time.Time
	matrix        promql.Matrix
	floats, hists []int // the next samples of each series
}

// at returns the result at a step (ms).
func (b *batch) at(t int64) promql.Vector {
	out := promql.Vector{}
	for i := range b.matrix {
		s := &b.matrix[i]
		for b.floats[i] < len(s.Floats) && s.Floats[b.floats[i]].T < t {
			b.floats[i]++
		}
		for b.hists[i] < len(s.Histograms) && s.Histograms[b.hists[i]].T < t {
			b.hists[i]++
		}
		if at := b.floats[i]; at < len(s.Floats) && s.Floats[at].T == t {
			out = append(out, promql.Sample{Metric: s.Metric, T: t, F: s.Floats[at].F})
		}
		if at := b.hists[i]; at < len(s.Histograms) && s.Histograms[at].T == t {
			out = append(out, promql.Sample{Metric: s.Metric, T: t, H: s.Histograms[at].H})
		}
	}
	return out
}
