package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Stats returns the cardinality of the series in the recent window, for /api/v1/status/tsdb: their
// number and time range (ms), as they are stored, and the limit largest entries by metric, label
// name (values, and bytes of values over all series) and label pair.
func (s *Storage) Stats(ctx context.Context, limit int) (*tsdb.Stats, error) {
	from, to := s.Recent()
	q := &querier{s.Snapshots.Range(from, to), s}
	out := &tsdb.Stats{MinTime: math.MaxInt64, MaxTime: math.MinInt64}
	pairs := map[labels.Label]uint64{}
	_, err := q.Read(ctx, func(snap catalog.Snapshot) error {
		clear(pairs)
		series, err := s.Tables.Series(ctx, snap, q.MinT, q.MaxT, nil) // each replica
		if err == nil {
			err = request.Found(ctx, series, lookup.LabelsOf)
		}
		if err != nil {
			return err
		}
		out.NumSeries = uint64(len(series))
		for i := range series {
			series[i].Labels.Range(func(l labels.Label) { pairs[l]++ })
		}
		objs, _, err := s.Tables.Objects(ctx, snap, from, to)
		for _, o := range objs {
			out.MinTime, out.MaxTime = min(out.MinTime, o.Footer.MinT), max(out.MaxTime, o.Footer.MaxT)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	byMetric, values, bytes, byPair := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for l, n := range pairs {
		if l.Name == model.MetricNameLabel {
			byMetric[l.Value] = n
		}
		values[l.Name]++
		bytes[l.Name] += n * uint64(len(l.Value))
		byPair[l.Name+"="+l.Value] = n
	}
	out.IndexPostingStats = &index.PostingsStats{
		CardinalityMetricsStats: largest(byMetric, limit),
		CardinalityLabelStats:   largest(values, limit),
		LabelValueStats:         largest(bytes, limit),
		LabelValuePairsStats:    largest(byPair, limit),
		NumLabelPairs:           len(pairs),
	}
	return out, nil
}

// largest returns the limit entries with the largest counts, descending, then by name.
func largest(counts map[string]uint64, limit int) []index.Stat {
	out := make([]index.Stat, 0, len(counts))
	for n, c := range counts {
		out = append(out, index.Stat{Name: n, Count: c})
	}
	slices.SortFunc(out, func(a, b index.Stat) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return out[:min(len(out), limit)]
}
