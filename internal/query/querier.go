package query

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/read"
	"github.com/promlake/promlake/internal/tenant"
)

// querier reads one time range. Its snapshot is taken by the first read, whose context names the tenant, and serves all further
// reads of that tenant, so that the selectors of one query see the same samples.
type querier struct {
	stage      *Stage
	mint, maxt int64 // ms, inclusive, within what keys can name

	mu    sync.Mutex
	snaps map[moment]catalog.Snapshot
}

// moment says whose data is read, and as of when.
type moment struct {
	tenant string
	asOf   time.Time // zero = now
}

// Querier implements storage.Queryable.
func (s *Stage) Querier(mint, maxt int64) (storage.Querier, error) {
	return s.newQuerier(mint, maxt), nil
}

func (s *Stage) newQuerier(mint, maxt int64) *querier {
	return &querier{stage: s, mint: max(mint, key.MinTime), maxt: min(maxt, key.MaxTime), snaps: map[moment]catalog.Snapshot{}}
}

// Close implements storage.LabelQuerier.
func (q *querier) Close() error { return nil }

// snapshot returns the querier's snapshot; fresh asks for a new one, which then is the querier's.
func (q *querier) snapshot(ctx context.Context, fresh bool) (catalog.Snapshot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := moment{tenant: tenant.From(ctx)}
	m.asOf, _ = read.AsOf(ctx)
	if snap, ok := q.snaps[m]; ok && !fresh {
		return snap, nil
	}
	snap, err := q.stage.snapshot(ctx, m.tenant, q.mint, q.maxt)
	if err != nil {
		return snap, err
	}
	q.snaps[m] = snap
	return snap, nil
}

// Select implements storage.Querier. Samples are those within both the querier's and the hints' range; hints.Func "series" means
// that none are needed, and returns the series of every segment, and of every block's series table, that overlaps the range.
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
	ctx, done := q.stage.accounting(ctx)
	defer func() { done("select", ms, len(out)) }()
	err := q.over(ctx, want, mint, maxt, ms, func(src *source, pred predicate, dead deletions) error {
		s := newScan(src, pred, want)
		c := newCollector(s, &q.stage.settings, q.stage.seed, mint, maxt)
		c.deletions = dead
		if err := q.stage.db.Each(ctx, s.String(), s.types, c.chunk); err != nil {
			return err
		}
		if err := q.stage.readBlocks(ctx, c); err != nil {
			return err
		}
		q.stage.metrics.samples.Add(float64(c.size))
		out = c.finish(hints)
		return nil
	})
	return out, err
}

// over opens the objects that may hold matching series of [mint, maxt] (ms) and calls fn with them, the matchers as SQL and, for
// samples, what is deleted of them; of labels, the SQL leaves out what is deleted. It does not call fn if nothing can match, and may
// call it twice: what the first call did is then to be forgotten.
func (q *querier) over(ctx context.Context, want payload, mint, maxt int64, ms []*labels.Matcher, fn func(*source, predicate, deletions) error) error {
	if mint > maxt {
		return nil
	}
	return q.stage.replanning(ctx, q.snapshot, func(snap catalog.Snapshot) error {
		sel, err := q.stage.locate(ctx, snap, mint, maxt, ms)
		if err != nil {
			return err
		}
		return q.stage.with(ctx, sel, func(src *source) error {
			pred, err := q.stage.predicate(ctx, src, ms)
			if err != nil || pred.never {
				return err
			}
			pred.and(src.overlapping(mint, maxt))
			if want == labelsOnly {
				conds, err := q.stage.alive(ctx, src, snap.Tombstones, mint, maxt)
				if err != nil {
					return err
				}
				pred.and(conds...)
				return fn(src, pred, deletions{})
			}
			dead, err := newDeletions(snap.Tombstones, src.objs)
			if err != nil {
				return err
			}
			return fn(src, pred, dead)
		})
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
