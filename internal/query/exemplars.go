package query

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

type exemplarQuerier struct {
	ctx context.Context
	*data
}

// ExemplarQuerier implements storage.ExemplarQueryable. ctx names the tenant and bounds the querier's reads.
func (s *data) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return &exemplarQuerier{ctx, s}, nil
}

// Select implements storage.ExemplarQuerier: the exemplars of [start, end] (ms) of the series that match one of sets, by series in the order
// of labels, each once, ascending by time.
func (q *exemplarQuerier) Select(start, end int64, sets ...[]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	start, end = max(start, key.MinTime), min(end, key.MaxTime)
	if start > end || len(sets) == 0 {
		return nil, nil
	}
	s := q.data
	err = s.metrics.Measure("exemplars", func() error {
		_, err := s.snapshots.Range(start, end).Read(q.ctx, func(snap catalog.Snapshot) error {
			m, err := s.tables.Exemplars(q.ctx, snap, start, end, sets...)
			if err == nil {
				out, err = s.samples.Exemplars(q.ctx, m)
			}
			return err
		})
		return err
	})
	return out, err
}
