package engine

import (
	"context"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/store/catalog"
)

// view is the storage of one query: it adds the results of pushed subtrees, as series with the
// names that the plan gave them, to the queried storage.
type view struct {
	storage.Queryable
	snap    *catalog.Snapshot // that the plan was made on; nil: none was
	wide    bool              // snap is wider than the query's range by replica.Around
	results results
	whole   *exec.Result // that is the answer; nil: none is
}

// results are those of the pushed subtrees of a plan, in its order.
type results []*exec.Result

// of returns the result for which the selector with a matcher stands, nil if there is none.
func (r results) of(m *labels.Matcher) *exec.Result {
	if m.Name != plan.PushedLabel {
		return nil
	}
	if i, err := strconv.Atoi(m.Value); err == nil && i >= 0 && i < len(r) {
		return r[i]
	}
	return nil
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
	results results
}

// Select implements storage.Querier.
func (q *viewQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	for _, m := range ms {
		if r := q.results.of(m); r != nil {
			if err := request.Evaluated(ctx, r.Len(), ms); err != nil {
				return storage.ErrSeriesSet(err)
			}
			if quote := request.From(ctx).Quote; quote != nil {
				quote.Touch(0, -r.Present())
			}
			return samples.LoadedSet(r.Series(), r.Warnings)
		}
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}
