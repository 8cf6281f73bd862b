package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Weigh returns the series that match one of sets and what is stored of them in [mint, maxt] (ms,
// inclusive), by series tables alone (lookup.Tables.Weigh). The tenant is that of ctx.
func (s *Storage) Weigh(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (out []lookup.Weighed, err error) {
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt || len(sets) == 0 {
		return nil, nil
	}
	err = s.Metrics.Measure("cardinality", func() error {
		_, err := s.Snapshots.Range(mint, maxt).Read(ctx, func(snap catalog.Snapshot) error {
			if out, err = s.Tables.Weigh(ctx, snap, mint, maxt, sets...); err != nil {
				return err
			}
			return request.Found(ctx, out, lookup.WeighedLabels)
		})
		return err
	})
	return out, err
}

// Recent is the range (ms) that Stats reads now.
func (s *Storage) Recent() (mint, maxt int64) {
	now := s.Now()
	return now.Add(-s.RecentWindow).UnixMilli(), now.UnixMilli()
}
