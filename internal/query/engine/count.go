package engine

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Count returns what a deletion of [mint, maxt] (ms, inclusive) of the series that match one of
// sets would remove: the series with a sample there, the stored samples (one that several objects
// have is counted as often), and the samples' share of their objects' bytes, as if all samples of
// an object were equally large. Deleted samples do not count. The tenant is that of ctx.
func (s *Storage) Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error) {
	err = s.read(ctx, "count", sets, mint, maxt, func(snap catalog.Snapshot, mint, maxt int64) error {
		m, err := s.Tables.Match(ctx, snap, mint, maxt, sets...)
		if err == nil {
			series, samples, bytes, err = s.Samples.Count(ctx, m)
		}
		return err
	})
	return series, samples, bytes, err
}

// read calls fn on a snapshot of [mint, maxt], clipped to times that objects can have, and measures
// it as an operation. It does not call fn if there is nothing to read.
func (s *Storage) read(ctx context.Context, operation string, sets [][]*labels.Matcher, mint, maxt int64, fn func(snap catalog.Snapshot, mint, maxt int64) error) error {
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt || len(sets) == 0 {
		return nil
	}
	return s.Metrics.Measure(operation, func() error {
		_, err := s.Snapshots.Range(mint, maxt).Read(ctx, func(snap catalog.Snapshot) error { return fn(snap, mint, maxt) })
		return err
	})
}

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
