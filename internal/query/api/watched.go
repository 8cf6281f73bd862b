package api

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// watched is a Backend that classifies storage errors before upstream sees them. It passes series
// and samples unchanged.
type watched struct{ Backend }

// Unwrap gives the engine access to the storage.
func (b watched) Unwrap() storage.Queryable { return b.Backend }

func (b watched) Querier(mint, maxt int64) (storage.Querier, error) {
	open := func() (storage.Querier, error) { return b.Backend.Querier(mint, maxt) }
	q, err := open()
	if err != nil {
		return nil, respond.Classify(context.Background(), err)
	}
	return watchedQuerier{&federatedQuerier{Querier: q, open: open}}, nil
}

func (b watched) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	q, err := b.Backend.ChunkQuerier(mint, maxt)
	if err != nil {
		return nil, respond.Classify(context.Background(), err)
	}
	return watchedChunkQuerier{q}, nil
}

func (b watched) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	if tenant.Several(ctx) {
		return watchedExemplars{ctx, &federatedExemplars{ctx, b.Backend.ExemplarQuerier}}, nil
	}
	q, err := b.Backend.ExemplarQuerier(ctx)
	if err != nil {
		return nil, respond.Classify(ctx, err)
	}
	return watchedExemplars{ctx, q}, nil
}

type watchedQuerier struct{ storage.Querier }

func (q watchedQuerier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, warnings, err := q.Querier.LabelValues(ctx, name, hints, ms...)
	return values, warnings, respond.Classify(ctx, err)
}

func (q watchedQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, warnings, err := q.Querier.LabelNames(ctx, hints, ms...)
	return names, warnings, respond.Classify(ctx, err)
}

func (q watchedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	return watchedSet{q.Querier.Select(ctx, sorted, hints, ms...), ctx}
}

// watchedChunkQuerier is read by Select only.
type watchedChunkQuerier struct{ storage.ChunkQuerier }

func (q watchedChunkQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.ChunkSeriesSet {
	return watchedChunkSet{q.ChunkQuerier.Select(ctx, sorted, hints, ms...), ctx}
}

// The context of a set is that of the Select that returned it. The end of that context explains the
// set's failure.
type watchedSet struct {
	storage.SeriesSet
	ctx context.Context
}

func (s watchedSet) Err() error { return recorded(s.ctx, respond.Classify(s.ctx, s.SeriesSet.Err())) }

type watchedChunkSet struct {
	storage.ChunkSeriesSet
	ctx context.Context
}

func (s watchedChunkSet) Err() error {
	return recorded(s.ctx, respond.Classify(s.ctx, s.ChunkSeriesSet.Err()))
}

type watchedExemplars struct {
	ctx context.Context
	storage.ExemplarQuerier
}

func (q watchedExemplars) Select(start, end int64, ms ...[]*labels.Matcher) ([]exemplar.QueryResult, error) {
	res, err := q.ExemplarQuerier.Select(start, end, ms...)
	return res, respond.Classify(q.ctx, err)
}
