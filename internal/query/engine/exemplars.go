package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/store/catalog"
)

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
