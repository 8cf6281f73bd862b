package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Storage answers what upstream's API asks of a storage. It implements
// storage.SampleAndChunkQueryable and storage.ExemplarQueryable. The tenant of a read is the one
// that its context carries. It is safe for concurrent use.
type Storage struct {
	Snapshots    *snapshot.Cache
	Files        *source.Files
	Tables       *lookup.Tables  // series as they are stored
	Series       *lookup.Chooser // and as they are shown
	Samples      *samples.Reader
	Metrics      *request.Metrics
	Logger       *slog.Logger
	Now          func() time.Time
	RecentWindow time.Duration // before now, that Metadata and Stats read
}

// querier reads one time range. The selectors of one query see the same samples.
type querier struct {
	*snapshot.Range
	*Storage
}

// Querier implements storage.Queryable.
func (s *Storage) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{s.Snapshots.Range(mint, maxt), s}, nil
}

// Close implements storage.LabelQuerier.
func (q *querier) Close() error { return nil }

// Select implements storage.Querier. It returns the samples within both the querier's and the
// hints' range. hints.Func "series" asks for series without samples: those of every segment, and of
// every block's series table, that overlap the range.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	mint, maxt, read := q.MinT, q.MaxT, q.sampled
	if hints != nil {
		mint, maxt = q.Clip(hints.Start, hints.End)
		if hints.Func == "series" {
			read = q.labelled
		}
	}
	return samples.LazySet(func() (out []*samples.Series, notes annotations.Annotations, err error) {
		if mint > maxt {
			return nil, nil, nil
		}
		err = q.Metrics.Measure("select", func() error {
			st, outer := &request.Stats{}, request.From(ctx).Stats
			ctx := request.WithStats(ctx, st)
			notes, err = q.ReadWide(ctx, func(snap *catalog.Snapshot, wide bool) error {
				out, err = read(ctx, *snap, wide, mint, maxt, hints, ms)
				return err
			})
			t := st.Totals()
			if outer != nil {
				outer.Add(t)
			}
			request.From(ctx).Quote.Touch(len(out), 0)
			q.Logger.Debug("read from storage", "tenant", tenant.From(ctx), "operation", "select", "matchers", ms, "series", len(out), "read", t)
			return err
		})
		return out, notes, err
	})
}

// sampled returns the series that match, with their samples.
func (q *querier) sampled(ctx context.Context, snap catalog.Snapshot, wide bool, mint, maxt int64, hints *storage.SelectHints, ms []*labels.Matcher) ([]*samples.Series, error) {
	match := q.Series.Match
	if hints != nil && series.ReadsTotals(hints.Func) {
		match = q.Series.MatchTotals
	}
	m, err := match(ctx, snap, wide, mint, maxt, ms)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(request.Found(ctx, m.Series, lookup.LabelsOf), request.Selected(ctx, m.Series, lookup.LabelsOf)); err != nil {
		return nil, err
	}
	if err := request.Evaluated(ctx, len(m.Series), ms); err != nil {
		return nil, err
	}
	return q.Samples.Select(ctx, m, hints)
}

// labelled returns the series that match, without samples. They may have none in the range.
func (q *querier) labelled(ctx context.Context, snap catalog.Snapshot, _ bool, mint, maxt int64, hints *storage.SelectHints, ms []*labels.Matcher) ([]*samples.Series, error) {
	series, err := q.Series.Series(ctx, snap, mint, maxt, ms)
	if err != nil {
		return nil, err
	}
	if err := request.Found(ctx, series, lookup.LabelsOf); err != nil {
		return nil, err
	}
	return samples.Labelled(series, hints), nil
}

// chunkQuerier encodes what a querier reads as chunks.
type chunkQuerier struct{ *querier }

// ChunkQuerier implements storage.ChunkQueryable.
func (s *Storage) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	return chunkQuerier{&querier{s.Snapshots.Range(mint, maxt), s}}, nil
}

// Select implements storage.ChunkQuerier.
func (q chunkQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.ChunkSeriesSet {
	return storage.NewSeriesSetToChunkSet(q.querier.Select(ctx, sorted, hints, ms...))
}

type exemplarQuerier struct {
	ctx context.Context
	*Storage
}

// ExemplarQuerier implements storage.ExemplarQueryable. ctx names the tenant and bounds the
// querier's reads.
func (s *Storage) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return &exemplarQuerier{ctx, s}, nil
}

// Select implements storage.ExemplarQuerier. It returns the exemplars of [start, end] (ms) of the
// series that match one of sets: the series by labels, the exemplars of each ascending by time,
// each once.
func (q *exemplarQuerier) Select(start, end int64, sets ...[]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	err = q.read(q.ctx, "exemplars", sets, start, end, func(snap catalog.Snapshot, start, end int64) error {
		m, err := q.Series.Exemplars(q.ctx, snap, start, end, sets...)
		if err == nil {
			out, err = q.Samples.Exemplars(q.ctx, m)
		}
		return err
	})
	return out, err
}
