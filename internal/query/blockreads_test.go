package query_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestOnlyWantedFilesAreFetched: a select reads meta.json, the series table and the sample files
// that have a wanted row group, and its counters show that.
func TestOnlyWantedFilesAreFetched(t *testing.T) {
	remote := &laketest.Remote{Store: laketest.NewDir(t)}
	l := laketest.New(t, remote, query.Settings{})
	var rows []segment.Row
	for m := range 10 {
		for i := range 10 {
			r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", m), "i", fmt.Sprint(i))}
			for j := range 100 {
				r.Floats = append(r.Floats, segment.Float{T: int64(j) * 1000, V: float64(m*i*j) / 7})
			}
			rows = append(rows, r)
		}
	}
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 500, FileBytes: 1}, rows)[0] // a file for every row group
	files := 0
	for range remote.List(t.Context(), b.Key(tenant.Default).Prefix()+"samples-", "") {
		files++
	}
	require.Equal(t, 20, files)
	for _, tc := range []struct {
		name     string
		matchers []*labels.Matcher
		gets     int64 // more than before
		groups   int64
	}{
		{"one series", []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m3"), laketest.Equal("i", "7")}, 3, 1}, // meta.json, series.parquet, samples
		{"again", []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m3"), laketest.Equal("i", "7")}, 0, 1},
		{"one metric", []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m3")}, 1, 2},
		{"nothing", []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m11")}, 0, 0},
		{"all", []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")}, 18, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := remote.Gets.Load()
			st := &request.Stats{}
			q, err := l.Querier(0, 200_000)
			require.NoError(t, err)
			got := exact(t, q.Select(request.WithStats(t.Context(), st), true, nil, tc.matchers...))
			require.Equal(t, expected(rows, 0, 200_000, tc.matchers...), got)
			require.Equal(t, tc.gets, remote.Gets.Load()-before)
			totals := st.Totals()
			require.Equal(t, int64(1), totals.Blocks)
			require.Equal(t, tc.groups, totals.RowGroups.Read)
			if tc.groups > 0 {
				require.Equal(t, int64(20), totals.RowGroups.Considered)
				require.Equal(t, tc.groups == 20, totals.Bytes.Read == totals.Bytes.Considered)
			}
		})
	}
	t.Run("outside of the time range", func(t *testing.T) {
		before := remote.Gets.Load()
		require.Empty(t, query1(t, l, 99_001, 200_000, nil, laketest.Equal(model.MetricNameLabel, "m3")))
		require.Equal(t, before, remote.Gets.Load())
	})
}

// TestScatteredSeries: the wanted rows are in every other row group of a file, in more runs than a
// statement has parts for a file.
func TestScatteredSeries(t *testing.T) {
	for _, tc := range []struct {
		name   string
		series int
		shape  laketest.Shape
	}{
		{"parts of one file", 100, laketest.Shape{Level: key.L2h, GroupRows: 40}},
		{"more files than a statement has parts", 900, laketest.Shape{Level: key.L2h, GroupRows: 41, FileBytes: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{})
			var rows []segment.Row
			for i := range tc.series {
				r := segment.Row{Labels: laketest.Metric("m", "instance", fmt.Sprintf("%03d", i), "kind", []string{"a", "b", "c"}[i%3])}
				for j := range 40 {
					r.Floats = append(r.Floats, segment.Float{T: int64(j * 10), V: float64(i) + float64(j)/100})
				}
				rows = append(rows, r)
			}
			l.WriteBlocks(tenant.Default, tc.shape, rows)
			for _, kind := range []string{"a", "b", "c"} {
				for _, r := range [][2]int64{{0, 400}, {55, 320}, {380, 1000}} {
					q, err := l.Querier(r[0], r[1])
					require.NoError(t, err)
					require.Equal(t, expected(rows, r[0], r[1], laketest.Equal("kind", kind)), exact(t, q.Select(t.Context(), true, nil, laketest.Equal("kind", kind))))
				}
			}
		})
	}
}

// TestReplan: when an object is gone, the query uses a fresh snapshot, once.
func TestReplan(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	rows := []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: 10, V: 1}, {T: 20, V: 2}}}}
	seg := l.WriteSegment(tenant.Default, 0, rows, nil)
	q, err := l.Querier(0, 100)
	require.NoError(t, err)
	want := expected(rows, 0, 100)
	sel := laketest.Equal(model.MetricNameLabel, "m")
	require.Equal(t, want, exact(t, q.Select(t.Context(), true, nil, sel)))

	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)[0]
	require.NoError(t, l.Store.Delete(t.Context(), seg.String()))
	require.Equal(t, want, exact(t, q.Select(t.Context(), true, nil, sel)), "through the snapshot that has the segment")
	names, _, err := q.LabelNames(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{model.MetricNameLabel}, names)

	for _, file := range []string{block.SamplesFile(0), block.SeriesFile, block.MetaFile} {
		require.NoError(t, l.Store.Delete(t.Context(), b.Key(tenant.Default).File(file)))
		for _, st := range []*laketest.Lake{l, laketest.New(t, &laketest.Remote{Store: l.Store}, query.Settings{})} {
			q, err := st.Querier(0, 100)
			require.NoError(t, err)
			set := q.Select(t.Context(), true, nil, sel)
			require.False(t, set.Next())
			var gone *query.GoneError
			require.ErrorAs(t, set.Err(), &gone, file)
			require.ErrorIs(t, set.Err(), objstore.ErrNotFound)
			require.ErrorContains(t, set.Err(), b.Key(tenant.Default).Prefix())
		}
	}
}

// TestAsOf: a read of the past sees samples that were deleted later, and none that came later.
func TestAsOf(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{})
	old := []segment.Row{{Labels: laketest.Metric("m", "i", "old"), Floats: []segment.Float{{T: 10, V: 1}}}}
	l.Write(tenant.Default, old)
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, []segment.Row{{Labels: laketest.Metric("m", "i", "block"), Floats: []segment.Float{{T: 10, V: 2}}}})
	before := laketest.Now().Add(time.Minute)
	l.Seq += 3_600_000 // an hour of segment ids
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", "i", "late"), Floats: []segment.Float{{T: 10, V: 3}}}})
	store.Ahead = 2 * time.Hour
	deleted := l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m")}, 0, 100)
	series := func(ctx context.Context) ([]string, error) {
		q, err := l.Querier(0, 100)
		require.NoError(t, err)
		values, _, err := q.LabelValues(ctx, "i", nil)
		if err != nil {
			return nil, err
		}
		require.Len(t, exact(t, q.Select(ctx, true, nil, laketest.Equal(model.MetricNameLabel, "m"))), len(values))
		return values, nil
	}
	got, err := series(t.Context())
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = series(request.WithAsOf(t.Context(), before))
	require.NoError(t, err)
	require.Equal(t, []string{"block", "old"}, got)

	l.Commit(tenant.Default, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m.Oldest = catalog.Floor{Point: catalog.Point{Generation: deleted.Generation, ID: deleted.ID}}
		return m, nil
	})
	_, err = series(request.WithAsOf(t.Context(), before))
	var tooOld *query.TooOldError
	require.ErrorAs(t, err, &tooOld)
	require.True(t, tooOld.QueryLimit())
	require.ErrorContains(t, err, deleted.Time().UTC().Format("2006-01-02T15:04:05"))
}

// TestCount counts what a deletion would remove from segments and blocks, without samples that are
// already deleted.
func TestCount(t *testing.T) {
	for _, layout := range laketest.Layouts[:2] {
		t.Run(layout.Name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{})
			rows := []segment.Row{
				{Labels: laketest.Metric("m", "i", "a"), Floats: []segment.Float{{T: 10, V: 1}, {T: 20, V: 2}, {T: 30, V: 3}}},
				{Labels: laketest.Metric("m", "i", "b"), Floats: []segment.Float{{T: 10, V: 1}}, Hists: []segment.Hist{{T: 40, H: tsdbutil.GenerateTestHistogram(1)}}},
				{Labels: laketest.Metric("n"), Floats: []segment.Float{{T: 10, V: 1}, {T: 50, V: 2}, {T: 60, V: 2}}},
			}
			layout.Write(l, tenant.Default, rows)
			m := []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m")}
			count := func(mint, maxt int64, sets ...[]*labels.Matcher) [2]int64 {
				series, samples, bytes, err := l.Count(t.Context(), sets, mint, maxt)
				require.NoError(t, err)
				require.Equal(t, samples > 0, bytes > 0)
				return [2]int64{series, samples}
			}
			require.Equal(t, [2]int64{2, 5}, count(0, 100, m))
			require.Equal(t, [2]int64{2, 3}, count(20, 40, m))
			require.Equal(t, [2]int64{1, 1}, count(35, 45, m))
			require.Equal(t, [2]int64{3, 7}, count(0, 50, m, []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "n")}, m))
			require.Equal(t, [2]int64{}, count(0, 5, m))
			require.Equal(t, [2]int64{}, count(0, 100, []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "x")}))
			require.Equal(t, [2]int64{}, count(0, 100))
			l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("i", "a")}, 15, 25)
			require.Equal(t, [2]int64{2, 4}, count(0, 100, m))
			require.Equal(t, [2]int64{1, 1}, count(20, 30, m))
			series, samples, bytes, err := l.Count(t.Context(), [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")}}, 0, 100)
			require.NoError(t, err)
			require.Equal(t, []int64{3, 7}, []int64{series, samples})
			require.Positive(t, bytes)
		})
	}
}

// TestMetadataAlone: a block may hold nothing but metadata.
func TestMetadataAlone(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, nil, segment.Metadata{Metric: "m", Type: "gauge", Help: "M."})
	got, err := l.Metadata(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, got["m"], 1)
	now := laketest.Now().UnixMilli()
	require.Empty(t, query1(t, l, now-1000, now, nil, laketest.Equal(model.MetricNameLabel, "m")))
}

// TestBlockIDsDoNotMatter: a block stores another id for a series whose id is taken. The series is
// still the same as that of its row in a segment.
func TestBlockIDsDoNotMatter(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Rewrite = truncateIDs(t)
	var first, second []segment.Row
	for i := range 20 {
		first = append(first, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 10, V: float64(i)}}})
		second = append(second, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 20, V: float64(-i)}}})
	}
	l.Write(tenant.Default, first)
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, second)
	got := query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m"))
	require.Len(t, got, 20)
	require.Contains(t, got, `{__name__="m", i="7"}: 10=7 20=-7`)
}
