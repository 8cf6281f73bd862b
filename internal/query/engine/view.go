package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// view is the storage of one query: it adds the results of pushed subtrees, as series with the
// names that the plan gave them, to the queried storage.
type view struct {
	storage.Queryable
	snap    *catalog.Snapshot // that the plan was made on; nil: none was
	wide    bool              // snap is wider than the query's range by replica.Around
	results map[string]*exec.Result
	whole   *exec.Result // that is the answer; nil: none is
}

// Querier implements storage.Queryable.
func (v *view) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := v.Queryable.Querier(mint, maxt)
	if err != nil || len(v.results) == 0 {
		return q, err
	}
	return &viewQuerier{q, v.results}, nil
}

// release drops the results, which nothing reads any more.
func (v *view) release() {
	for _, r := range v.results {
		r.Release()
	}
	v.results, v.whole = nil, nil
}

type viewQuerier struct {
	storage.Querier
	results map[string]*exec.Result
}

// Select implements storage.Querier.
func (q *viewQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	for _, m := range ms {
		if r := q.results[m.Value]; r != nil && m.Name == plan.PushedLabel {
			if err := request.Evaluated(ctx, r.Len()); err != nil {
				return storage.ErrSeriesSet(err)
			}
			return samples.LoadedSet(r.Series(), r.Warnings)
		}
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}
