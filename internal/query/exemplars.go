package query

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

type exemplarQuerier struct {
	ctx   context.Context
	stage *Stage
}

// ExemplarQuerier implements storage.ExemplarQueryable. ctx names the tenant and bounds the querier's reads.
func (s *Stage) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return &exemplarQuerier{ctx, s}, nil
}

// Select implements storage.ExemplarQuerier: the exemplars of [start, end] (ms) of the series that match one of sets, by series in the order
// of labels, each once, ascending by time.
func (q *exemplarQuerier) Select(start, end int64, sets ...[]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	start, end = max(start, key.MinTime), min(end, key.MaxTime)
	if start > end || len(sets) == 0 {
		return nil, nil
	}
	err = q.stage.metrics.Measure("exemplars", func() error {
		out, err = q.read(start, end, sets)
		return err
	})
	return out, err
}

func (q *exemplarQuerier) read(start, end int64, sets [][]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	s := q.stage
	_, err = s.snapshots.Range(start, end).Read(q.ctx, func(snap catalog.Snapshot) error {
		m, err := s.tables.Exemplars(q.ctx, snap, start, end, sets...)
		if err != nil {
			return err
		}
		r := &exemplarReading{reading: reading{Match: m, stage: s}, found: make([][]exemplar.Exemplar, len(m.Series))}
		if err := r.segments(q.ctx); err != nil {
			return err
		}
		if err := r.blocks(q.ctx); err != nil {
			return err
		}
		out = r.finish()
		return nil
	})
	return out, err
}

// finish orders series by labels, and the exemplars of each by time, each once.
func (r *exemplarReading) finish() []exemplar.QueryResult {
	out := make([]exemplar.QueryResult, 0, len(r.Series))
	for i, es := range r.found {
		if len(es) == 0 {
			continue
		}
		slices.SortFunc(es, compareExemplars)
		es = slices.CompactFunc(es, func(a, b exemplar.Exemplar) bool { return compareExemplars(a, b) == 0 })
		out = append(out, exemplar.QueryResult{SeriesLabels: r.Series[i].Labels, Exemplars: es})
	}
	slices.SortFunc(out, func(a, b exemplar.QueryResult) int { return labels.Compare(a.SeriesLabels, b.SeriesLabels) })
	return out
}

func compareExemplars(a, b exemplar.Exemplar) int {
	return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(a.Value, b.Value), labels.Compare(a.Labels, b.Labels))
}
