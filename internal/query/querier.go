package query

import (
	"context"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/tenant"
)

// querier reads one time range. Its snapshot is taken by the first read, whose context names the tenant, and serves all further
// reads of that tenant, so that the selectors of one query see the same samples.
type querier struct {
	stage      *Stage
	mint, maxt int64 // ms, inclusive, within what keys can name

	mu    sync.Mutex
	snaps map[string]catalog.Snapshot // by tenant
}

// Querier implements storage.Queryable.
func (s *Stage) Querier(mint, maxt int64) (storage.Querier, error) {
	return s.newQuerier(mint, maxt), nil
}

func (s *Stage) newQuerier(mint, maxt int64) *querier {
	return &querier{stage: s, mint: max(mint, key.MinTime), maxt: min(maxt, key.MaxTime), snaps: map[string]catalog.Snapshot{}}
}

// Close implements storage.LabelQuerier.
func (q *querier) Close() error { return nil }

func (q *querier) snapshot(ctx context.Context) (catalog.Snapshot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := tenant.From(ctx)
	if snap, ok := q.snaps[id]; ok {
		return snap, nil
	}
	snap, err := q.stage.snapshot(ctx, id, q.mint, q.maxt)
	if err != nil {
		return snap, err
	}
	q.snaps[id] = snap
	return snap, nil
}

// Select implements storage.Querier. Samples are those within both the querier's and the hints' range; hints.Func "series" means
// that none are needed, and returns the series of every segment that overlaps the range.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	mint, maxt, want := q.mint, q.maxt, samples
	if hints != nil {
		mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
		if hints.Func == "series" {
			want = labelsOnly
		}
	}
	return &seriesSet{load: func() (out []*memorySeries, err error) {
		err = q.stage.measure("select", func() error {
			out, err = q.read(ctx, want, mint, maxt, hints, ms)
			return err
		})
		return out, err
	}}
}

func (q *querier) read(ctx context.Context, want payload, mint, maxt int64, hints *storage.SelectHints, ms []*labels.Matcher) ([]*memorySeries, error) {
	var out []*memorySeries
	err := q.over(ctx, mint, maxt, ms, func(src *source, pred predicate) error {
		s := newScan(src, pred, want)
		c := newCollector(s, &q.stage.settings, q.stage.seed, mint, maxt)
		if err := q.stage.db.Each(ctx, s.String(), s.types, c.chunk); err != nil {
			return err
		}
		q.stage.metrics.samples.Add(float64(c.size))
		out = c.finish(hints)
		return nil
	})
	return out, err
}

// over opens the segments that may hold matching series of [mint, maxt] (ms) and calls fn with them and the matchers as SQL. It does
// not call fn if nothing can match.
func (q *querier) over(ctx context.Context, mint, maxt int64, ms []*labels.Matcher, fn func(src *source, pred predicate) error) error {
	if mint > maxt {
		return nil
	}
	snap, err := q.snapshot(ctx)
	if err != nil {
		return err
	}
	sel, err := q.stage.locate(ctx, snap, mint, maxt, ms)
	if err != nil {
		return err
	}
	return q.stage.with(ctx, sel, func(src *source) error {
		pred, err := q.stage.predicate(ctx, src, ms)
		if err != nil || pred.never {
			return err
		}
		return fn(src, pred)
	})
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
