package query_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// text renders all samples of a series set: "labels: t=v ..." per series; start timestamps as t<st,
// histograms as t=H<count>/<hint>.
func text(t *testing.T, set storage.SeriesSet) []string {
	t.Helper()
	var out []string
	for set.Next() {
		line := set.At().Labels().String() + ":"
		it := set.At().Iterator(nil)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			line += fmt.Sprintf(" %d", it.AtT())
			if st := it.AtST(); st != 0 {
				line += fmt.Sprintf("<%d", st)
			}
			switch typ {
			case chunkenc.ValFloat:
				_, v := it.At()
				if line += fmt.Sprintf("=%v", v); value.IsStaleNaN(v) {
					line += "(stale)"
				}
			case chunkenc.ValHistogram:
				_, h := it.AtHistogram(nil)
				line += fmt.Sprintf("=H%d/%d", h.Count, h.CounterResetHint)
			case chunkenc.ValFloatHistogram:
				_, h := it.AtFloatHistogram(nil)
				line += fmt.Sprintf("=F%v/%d", h.Count, h.CounterResetHint)
			}
		}
		require.NoError(t, it.Err())
		out = append(out, line)
	}
	require.NoError(t, set.Err())
	return out
}

func query1(t *testing.T, q storage.Queryable, mint, maxt int64, hints *storage.SelectHints, ms ...*labels.Matcher) []string {
	t.Helper()
	qr, err := q.Querier(mint, maxt)
	require.NoError(t, err)
	defer func() { require.NoError(t, qr.Close()) }()
	return text(t, qr.Select(t.Context(), true, hints, ms...))
}

func TestSelectMergesFiles(t *testing.T) {
	const w = key.WindowMillis
	stale := math.Float64frombits(value.StaleNaN)
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	a, b := laketest.Metric("m", "i", "a"), laketest.Metric("m", "i", "b", "Zone", "eu")
	l.Write(tenant.Default, []segment.Row{
		{Labels: a, Floats: []segment.Float{{T: 10, V: 1}, {T: 20, V: 2}, {T: w + 5, V: 9}}},
		{Labels: b, Floats: []segment.Float{{T: 10, V: 100}}},
		{Labels: laketest.Metric("other"), Floats: []segment.Float{{T: 10, V: 7}}},
	})
	l.Write(tenant.Default, []segment.Row{
		{Labels: a, Floats: []segment.Float{{T: 15, V: 1.5}, {T: 20, V: 22, ST: 12}, {T: 30, V: stale}}},
		{Labels: b, Hists: []segment.Hist{{T: 10, ST: 3, H: tsdbutil.GenerateTestHistogram(1)}}},
	})
	l.Write(tenant.Default, []segment.Row{{Labels: b, Floats: []segment.Float{{T: -5, V: 5}, {T: 40, V: math.Copysign(0, -1)}}}})
	l.Write("neighbour", []segment.Row{{Labels: a, Floats: []segment.Float{{T: 10, V: 666}}}})

	lineA := fmt.Sprintf(`{__name__="m", i="a"}: 10=1 15=1.5 20<12=22 30=NaN(stale) %d=9`, w+5)
	lineB := `{Zone="eu", __name__="m", i="b"}: -5=5 10<3=H21/0 40=-0`
	sel := laketest.Equal(model.MetricNameLabel, "m")
	require.Equal(t, []string{lineB, lineA}, query1(t, l, -w, 2*w, nil, sel))
	t.Run("range of the querier", func(t *testing.T) {
		require.Equal(t, []string{`{__name__="m", i="a"}: 15=1.5 20<12=22`}, query1(t, l, 11, 20, nil, sel))
	})
	t.Run("range of the hints", func(t *testing.T) {
		require.Equal(t, []string{`{Zone="eu", __name__="m", i="b"}: 10<3=H21/0`, `{__name__="m", i="a"}: 10=1`}, query1(t, l, 0, 100, &storage.SelectHints{Start: 5, End: 10}, sel))
	})
	t.Run("extreme range", func(t *testing.T) {
		require.Equal(t, []string{lineB, lineA}, query1(t, l, math.MinInt64, math.MaxInt64, nil, sel))
		require.Empty(t, query1(t, l, 10, 9, nil, sel))
	})
	t.Run("limit", func(t *testing.T) {
		require.Equal(t, []string{lineB}, query1(t, l, -w, 2*w, &storage.SelectHints{Start: -w, End: 2 * w, Limit: 1}, sel))
	})
	t.Run("shards", func(t *testing.T) {
		var got []string
		for i := range uint64(3) {
			got = append(got, query1(t, l, -w, 2*w, &storage.SelectHints{Start: -w, End: 2 * w, ShardCount: 3, ShardIndex: i}, sel)...)
		}
		require.ElementsMatch(t, []string{lineA, lineB}, got)
	})
	t.Run("series only", func(t *testing.T) {
		require.Equal(t, []string{`{Zone="eu", __name__="m", i="b"}:`, `{__name__="m", i="a"}:`}, query1(t, l, 0, 100, &storage.SelectHints{Start: 0, End: 100, Func: "series"}, sel))
		require.Empty(t, query1(t, l, 3*w, 4*w, &storage.SelectHints{Start: 3 * w, End: 4 * w, Func: "series"}, sel))
	})
	t.Run("other tenant", func(t *testing.T) {
		q, err := l.Querier(0, 100)
		require.NoError(t, err)
		require.Equal(t, []string{`{__name__="m", i="a"}: 10=666`}, text(t, q.Select(tenant.With(t.Context(), "neighbour"), true, nil, sel)))
		require.Empty(t, text(t, q.Select(tenant.With(t.Context(), "nobody"), true, nil, sel)))
	})
	t.Run("chunks", func(t *testing.T) {
		q, err := l.ChunkQuerier(-w, 2*w)
		require.NoError(t, err)
		require.Equal(t, []string{lineB, lineA}, text(t, storage.NewSeriesSetFromChunkSeriesSet(q.Select(t.Context(), true, nil, sel))))
		names, _, err := q.LabelNames(t.Context(), &storage.LabelHints{Limit: 2})
		require.NoError(t, err)
		require.Equal(t, []string{"Zone", model.MetricNameLabel}, names)
	})
	t.Run("one snapshot per querier", func(t *testing.T) {
		q, err := l.Querier(0, 100)
		require.NoError(t, err)
		require.Len(t, text(t, q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "late"))), 0)
		l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("late"), Floats: []segment.Float{{T: 1, V: 1}}}})
		require.Len(t, text(t, q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "late"))), 0)
		require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "late")), 1)
	})
}

// TestCounterResetHints: a hint is derived from the adjacent samples, whichever files they come
// from.
func TestCounterResetHints(t *testing.T) {
	hist := func(t int64, count uint64, hint histogram.CounterResetHint) segment.Hist {
		return segment.Hist{T: t, H: &histogram.Histogram{Count: count, ZeroCount: count, CounterResetHint: hint}}
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	m := laketest.Metric("h")
	l.Write(tenant.Default, []segment.Row{{Labels: m, Hists: []segment.Hist{hist(10, 5, 0), hist(30, 9, histogram.NotCounterReset), hist(50, 12, 0)}}})
	l.Write(tenant.Default, []segment.Row{{Labels: m, Hists: []segment.Hist{hist(20, 10, 0), hist(40, 3, 0), hist(60, 12, histogram.CounterReset), hist(70, 1, histogram.GaugeType), hist(80, 20, 0), hist(90, 21, 0)}}})
	sel := laketest.Equal(model.MetricNameLabel, "h")
	const all = `{__name__="h"}: 10=H5/0 20=H10/2 30=H9/0 40=H3/0 50=H12/2 60=H12/0 70=H1/3 80=H20/0 90=H21/2`
	require.Equal(t, []string{all}, query1(t, l, 0, 100, nil, sel))
	// The sample before the range counts, if nothing between was left unread.
	require.Equal(t, []string{`{__name__="h"}: 20=H10/2`}, query1(t, l, 15, 25, nil, sel))
	require.Equal(t, []string{`{__name__="h"}: 90=H21/2`}, query1(t, l, 85, 95, nil, sel))
	require.Empty(t, query1(t, l, 91, 95, nil, sel))
	l.Write(tenant.Default, []segment.Row{{Labels: m, Hists: []segment.Hist{hist(84, 50, 0)}}})
	require.Equal(t, []string{`{__name__="h"}: 90=H21/0`}, query1(t, l, 85, 95, nil, sel))
}

func TestIteratorContract(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Write(tenant.Default, []segment.Row{{
		Labels: laketest.Metric("m"), Floats: []segment.Float{{T: 10, V: 1}, {T: 20, V: 2}},
		Hists: []segment.Hist{{T: 30, H: tsdbutil.GenerateTestHistogram(2)}, {T: 40, FH: tsdbutil.GenerateTestFloatHistogram(3)}},
	}})
	q, err := l.Querier(0, 100)
	require.NoError(t, err)
	set := q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	require.True(t, set.Next())
	s := set.At()
	require.False(t, set.Next())

	it := s.Iterator(nil)
	require.Equal(t, chunkenc.ValFloat, it.Seek(0))
	require.Equal(t, chunkenc.ValFloat, it.Seek(-5))
	require.Equal(t, int64(10), it.AtT())
	require.Equal(t, chunkenc.ValHistogram, it.Seek(21))
	require.Equal(t, chunkenc.ValHistogram, it.Seek(15), "seek never goes back")
	_, h := it.AtHistogram(nil)
	h.PositiveBuckets[0] += 1000 // the caller's copy
	_, fh := it.AtFloatHistogram(&histogram.FloatHistogram{Count: 99})
	require.Equal(t, tsdbutil.GenerateTestHistogram(2).ToFloat(nil), fh)
	_, h2 := it.AtHistogram(&histogram.Histogram{})
	require.Equal(t, tsdbutil.GenerateTestHistogram(2), h2)
	require.Equal(t, chunkenc.ValFloatHistogram, it.Next())
	_, fh = it.AtFloatHistogram(fh)
	require.Equal(t, tsdbutil.GenerateTestFloatHistogram(3), fh)
	require.Equal(t, chunkenc.ValNone, it.Next())
	require.Equal(t, chunkenc.ValNone, it.Next())
	require.Equal(t, chunkenc.ValNone, it.Seek(0))
	again := s.Iterator(it)
	require.Same(t, it, again)
	require.Equal(t, chunkenc.ValFloat, again.Next())
	require.Equal(t, chunkenc.ValNone, again.Seek(41))

	got, err := storage.ExpandSamples(s.Iterator(nil), nil)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 20, 30, 40}, timesOf(got))
}

func timesOf(ss []chunks.Sample) (out []int64) {
	for _, s := range ss {
		out = append(out, s.T())
	}
	return out
}

func TestLimits(t *testing.T) {
	rows := []segment.Row{}
	for i := range 10 {
		rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 1, V: 1}, {T: 2, V: 1}}})
	}
	for _, tc := range []struct {
		name     string
		settings query.Settings
		matcher  *labels.Matcher
		limit    string
		value    int64
		flag     string
	}{
		{"samples", query.Settings{MaxSamples: 19}, laketest.Equal(model.MetricNameLabel, "m"), "samples per selector", 19, "--query.max-samples"},
		{"series", query.Settings{MaxSeries: 9}, laketest.Equal(model.MetricNameLabel, "m"), "series per selector", 9, "--query.max-series"},
		{"segments", query.Settings{MaxSegments: 1}, laketest.Equal(model.MetricNameLabel, "m"), "segments per selector", 1, "--query.max-segments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := laketest.NewDir(t)
			for _, s := range []struct {
				settings query.Settings
				fails    bool
			}{{tc.settings, true}, {query.Settings{}, false}} {
				l := laketest.New(t, store, s.settings)
				if s.fails {
					l.Write(tenant.Default, rows)
					l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", "j", "x"), Floats: []segment.Float{{T: 50, V: 1}}}})
				}
				q, err := l.Querier(0, 100)
				require.NoError(t, err)
				set := q.Select(t.Context(), true, nil, tc.matcher)
				for set.Next() {
				}
				if !s.fails {
					require.NoError(t, set.Err())
					continue
				}
				var lerr *query.LimitError
				require.ErrorAs(t, set.Err(), &lerr)
				require.Equal(t, []any{tc.limit, tc.value, tc.flag}, []any{lerr.Limit, lerr.Value, lerr.Flag})
				require.True(t, lerr.Needed == 0 || lerr.Needed > lerr.Value)
				require.ErrorContains(t, set.Err(), fmt.Sprint(tc.value))
				require.ErrorContains(t, set.Err(), tc.flag)
			}
		})
	}
}

func TestCancelledSelect(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: 1, V: 1}}}})
	ctx, cancel := context.WithCancel(t.Context())
	q, err := l.Querier(0, 100)
	require.NoError(t, err)
	set := q.Select(ctx, true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	cancel()
	require.False(t, set.Next())
	require.ErrorIs(t, set.Err(), context.Canceled)
}

// TestManyLabelNames: label names without a column in one file are in its MAP, and may have a
// column in another file.
func TestManyLabelNames(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	var rows []segment.Row
	for i := range segment.MaxLabelColumns + 20 {
		rows = append(rows, segment.Row{Labels: laketest.Metric("m", fmt.Sprintf("n%04d", i), "x"), Floats: []segment.Float{{T: 1, V: 1}}})
	}
	last := fmt.Sprintf("n%04d", segment.MaxLabelColumns+5)
	l.Write(tenant.Default, rows)
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", last, "x"), Floats: []segment.Float{{T: 2, V: 2}}}})
	for _, m := range []*labels.Matcher{laketest.Equal(last, "x"), labels.MustNewMatcher(labels.MatchNotEqual, last, ""), labels.MustNewMatcher(labels.MatchRegexp, last, "x.*")} {
		require.Equal(t, []string{`{__name__="m", ` + last + `="x"}: 1=1 2=2`}, query1(t, l, 0, 100, nil, m))
	}
	require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal(last, "")), len(rows)-1)
}
