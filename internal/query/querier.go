package query

import (
	"context"
	"errors"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
)

// querier reads one time range. The selectors of one query see the same samples.
type querier struct {
	*snapshot.Range
	stage *Stage
}

// Querier implements storage.Queryable.
func (s *Stage) Querier(mint, maxt int64) (storage.Querier, error) {
	return s.newQuerier(mint, maxt), nil
}

func (s *Stage) newQuerier(mint, maxt int64) *querier {
	return &querier{s.snapshots.Range(mint, maxt), s}
}

// Close implements storage.LabelQuerier.
func (q *querier) Close() error { return nil }

// Select implements storage.Querier. Samples are those within both the querier's and the hints' range; hints.Func "series" means
// that none are needed, and returns the series of every segment, and of every block's series table, that overlaps the range.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	mint, maxt, collect := q.MinT, q.MaxT, q.samples
	if hints != nil {
		mint, maxt = q.Clip(hints.Start, hints.End)
		if hints.Func == "series" {
			collect = q.series
		}
	}
	return &seriesSet{load: func() (out []*samples.Series, notes annotations.Annotations, err error) {
		if mint > maxt {
			return nil, nil, nil
		}
		err = q.stage.metrics.Measure("select", func() error {
			ctx, done := q.stage.accounting(ctx)
			defer func() { done("select", ms, len(out)) }()
			notes, err = q.Read(ctx, func(snap catalog.Snapshot) error {
				out, err = collect(ctx, snap, mint, maxt, hints, ms)
				return err
			})
			return err
		})
		return out, notes, err
	}}
}

// samples reads the samples of the series that match.
func (q *querier) samples(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, hints *storage.SelectHints, ms []*labels.Matcher) ([]*samples.Series, error) {
	m, err := q.stage.tables.Match(ctx, snap, mint, maxt, ms)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(request.Found(ctx, m.Series, matchedLabels), request.Selected(ctx, m.Series, matchedLabels)); err != nil {
		return nil, err
	}
	if err := request.Evaluated(ctx, len(m.Series)); err != nil {
		return nil, err
	}
	return q.stage.samples.Select(ctx, m, hints)
}

// series returns the series that match, without samples. They may have none in the range.
func (q *querier) series(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, hints *storage.SelectHints, ms []*labels.Matcher) ([]*samples.Series, error) {
	series, err := q.stage.tables.Series(ctx, snap, mint, maxt, ms)
	if err != nil {
		return nil, err
	}
	if err := request.Found(ctx, series, matchedLabels); err != nil {
		return nil, err
	}
	return samples.Labelled(series, hints), nil
}

// chunkQuerier encodes what a querier reads as chunks.
type chunkQuerier struct{ *querier }

// ChunkQuerier implements storage.ChunkQueryable.
func (s *Stage) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	return chunkQuerier{s.newQuerier(mint, maxt)}, nil
}

// Select implements storage.ChunkQuerier.
func (q chunkQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.ChunkSeriesSet {
	return storage.NewSeriesSetToChunkSet(q.querier.Select(ctx, sorted, hints, ms...))
}
