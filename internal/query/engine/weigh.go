package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Weigh returns the series that match one of sets and what is stored of them in [mint, maxt] (ms,
// inclusive), by series tables alone (lookup.Tables.Weigh). The tenant is that of ctx.
func (s *Storage) Weigh(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (out []lookup.Weighed, err error) {
	err = s.read(ctx, "cardinality", sets, mint, maxt, func(snap catalog.Snapshot, mint, maxt int64) (err error) {
		if out, err = s.Tables.Weigh(ctx, snap, mint, maxt, sets...); err != nil {
			return err
		}
		return request.Found(ctx, out, lookup.WeighedLabels)
	})
	return out, err
}

// Recent is the range (ms) that Stats reads now.
func (s *Storage) Recent() (mint, maxt int64) {
	now := s.Now()
	return now.Add(-s.RecentWindow).UnixMilli(), now.UnixMilli()
}
