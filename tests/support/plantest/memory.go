// Package plantest holds what the tests of query plans share: series in memory as a storage of
// upstream's engine, and files of queries. Its own tests run the statements of plans in DuckDB.
package plantest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// Memory is a storage of float series with distinct labels. Unlike a TSDB it always returns them in
// the order of their labels.
type Memory []promql.Series

// Load returns the series that a load command of promqltest creates.
func Load(t testing.TB, text string) Memory {
	q, err := promqltest.LoadedStorage(t, text).Querier(0, math.MaxInt64)
	require.NoError(t, err)
	var out Memory
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	for set.Next() {
		s := promql.Series{Metric: set.At().Labels()}
		for it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone; {
			ts, v := it.At()
			s.Floats = append(s.Floats, promql.FPoint{T: ts, F: v})
		}
		out = append(out, s)
	}
	require.NoError(t, set.Err())
	require.NoError(t, q.Close())
	return out
}

// Matching returns the series that all matchers match, in the order of their labels.
func (m Memory) Matching(ms []*labels.Matcher) []promql.Series {
	var out []promql.Series
	for _, s := range m {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return out
}

// Querier implements storage.Queryable.
func (m Memory) Querier(_, _ int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ of Memory }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	var out []storage.Series
	for _, s := range q.of.Matching(ms) {
		out = append(out, promql.NewStorageSeries(s))
	}
	return List(out, nil)
}

// LabelValues implements storage.Querier.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// List returns series as a set with warnings.
func List(series []storage.Series, warnings annotations.Annotations) storage.SeriesSet {
	return &list{series: series, at: -1, warnings: warnings}
}

type list struct {
	series   []storage.Series
	at       int
	warnings annotations.Annotations
}

// Next implements storage.SeriesSet.
func (l *list) Next() bool { l.at++; return l.at < len(l.series) }

// At implements storage.SeriesSet.
func (l *list) At() storage.Series { return l.series[l.at] }

// Err implements storage.SeriesSet.
func (l *list) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (l *list) Warnings() annotations.Annotations { return l.warnings }
