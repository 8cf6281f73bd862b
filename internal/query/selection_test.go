package query_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSelectionsAreThoseOfANewStage: a stage that remembers what its selectors matched finds what a
// stage finds that was started just now, while objects come and go, series change, and samples are
// deleted. The sizes of the memory are: nothing fits, some selections fit, all fit; and selections
// fit, but not the series tables, because of many other series.
func TestSelectionsAreThoseOfANewStage(t *testing.T) {
	for _, tc := range []struct {
		bytes  int64
		others int // series in each segment
	}{{1, 0}, {64 << 10, 0}, {64 << 20, 0}, {512 << 10, 1000}} {
		bytes := tc.bytes
		t.Run(fmt.Sprintf("bytes=%d,others=%d", bytes, tc.others), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(bytes), 1))
			store := laketest.NewDir(t)
			l := laketest.New(t, store, query.Settings{IndexCacheBytes: bytes})
			selectors := [][]*labels.Matcher{
				{laketest.Equal(model.MetricNameLabel, "m0")},
				{laketest.Equal(model.MetricNameLabel, "m1"), laketest.Equal("i", "3")},
				{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, "m[12]"), labels.MustNewMatcher(labels.MatchNotEqual, "i", "3")},
				{labels.MustNewMatcher(labels.MatchRegexp, "rare", ".+")},
			}
			var segments []key.Segment
			for step := range 40 {
				from := int64(1000 * step)
				for _, tenantID := range []string{tenant.Default, "other"} {
					seg := l.WriteSegment(tenantID, key.WindowOf(from), append(changingRows(rng, step, from), otherRows(tc.others, from)...), nil)
					if segments = append(segments, seg); len(segments) > 12 && rng.IntN(3) == 0 {
						require.NoError(t, store.Delete(t.Context(), segments[0].String()))
						segments = segments[1:]
					}
				}
				switch step % 20 {
				case 7:
					l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, changingRows(rng, step, from))
				case 13:
					l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("i", fmt.Sprint(rng.IntN(5)))}, from-5000, from)
				}
				ctx := t.Context()
				if rng.IntN(4) == 0 {
					ctx = tenant.With(ctx, "other")
				}
				mint, maxt := from-int64(rng.IntN(30_000)), from+int64(rng.IntN(1000))
				if tc.others > 0 {
					mint = from - 30_000 // with all objects, so that whole tables are read only at first
				}
				fresh := laketest.New(t, store, query.Settings{})
				for _, ms := range selectors {
					want, err := fresh.Resolve(ctx, mint, maxt, ms...)
					require.NoError(t, err)
					got, err := l.Resolve(ctx, mint, maxt, ms...)
					require.NoError(t, err)
					require.Equal(t, want, got, "step %d: %v in [%d, %d]", step, ms, mint, maxt)
				}
			}
			if tc.others > 0 {
				require.Less(t, l.Counted("promlake_query_cache_misses_total", "index"), 40., "of more than a hundred objects")
			}
			if hits := l.Counted("promlake_query_cache_hits_total", "selection"); bytes == 1 {
				require.Zero(t, hits)
			} else {
				require.Positive(t, hits)
			}
		})
	}
}

// TestManySeriesAreInOrder: the order of many series is remembered until a selector matches more of
// them, and is not that of the series in a shorter range.
func TestManySeriesAreInOrder(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{IndexCacheBytes: 64 << 20})
	for step, series := range []int{200, 300, 500, 400} {
		from := int64(10_000 * step)
		rows := make([]segment.Row, series)
		for i := range rows { // most of the next segment's series are others, between these
			rows[i] = segment.Row{Labels: laketest.Metric("many", "i", fmt.Sprintf("%04d", i*(2+step))), Floats: []segment.Float{{T: from, V: 1}}}
		}
		l.WriteSegment(tenant.Default, key.WindowOf(from), rows, nil)
		for _, mint := range []int64{0, from, 0} {
			got, err := l.Resolve(t.Context(), mint, from, laketest.Equal(model.MetricNameLabel, "many"))
			require.NoError(t, err)
			want, err := laketest.New(t, store, query.Settings{}).Resolve(t.Context(), mint, from, laketest.Equal(model.MetricNameLabel, "many"))
			require.NoError(t, err)
			require.Equal(t, want, got, "segments: %d, from %d", step+1, mint)
			require.True(t, slices.IsSortedFunc(got.Labels, labels.Compare))
			require.Greater(t, len(got.Labels), series-1)
		}
	}
}

// changingRows returns rows of a step, sorted as segments have them. Their series change now and
// then.
func changingRows(rng *rand.Rand, step int, from int64) (rows []segment.Row) {
	for m := range 3 {
		for i := range 5 {
			if rng.IntN(10) == 0 {
				continue
			}
			lset := []string{"i", fmt.Sprint(i), "pod", fmt.Sprint(step / (10 + i))}
			if rng.IntN(20) == 0 {
				lset = append(lset, "rare", "yes")
			}
			r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", m), lset...)}
			at := from + int64(rng.IntN(500))
			switch rng.IntN(12) {
			case 0:
				r.Hists = []segment.Hist{{T: at, H: tsdbutil.GenerateTestHistogram(1)}}
			default:
				r.Floats = []segment.Float{{T: at, V: 1}, {T: at + 1 + int64(rng.IntN(400)), V: 2}}
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
	return rows
}

// otherRows returns rows of series that no selector of the tests matches. They come last in a
// segment.
func otherRows(n int, at int64) []segment.Row {
	rows := make([]segment.Row, n)
	for i := range rows {
		rows[i] = segment.Row{Labels: laketest.Metric("other", "i", fmt.Sprintf("%04d", i)), Floats: []segment.Float{{T: at, V: 1}}}
	}
	return rows
}

// TestSelectedSeriesLimit: series that only other reads found do not count for the limit of a read.
func TestSelectedSeriesLimit(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MaxSeries: 3})
	row := func(i string, at int64) segment.Row {
		return segment.Row{Labels: laketest.Metric("m", "i", i), Floats: []segment.Float{{T: at, V: 1}}}
	}
	m := laketest.Equal(model.MetricNameLabel, "m")
	for n, names := range []string{"abc", "bcd", "def"} {
		var rows []segment.Row
		for _, name := range names {
			rows = append(rows, row(string(name), int64(100*n)))
		}
		l.Write(tenant.Default, rows)
		r, err := l.Resolve(t.Context(), int64(100*n), int64(100*n), m)
		require.NoError(t, err)
		require.Len(t, r.Labels, 3)
	}
	_, err := l.Resolve(t.Context(), 0, 100, m)
	require.ErrorContains(t, err, "limit of 3 series per selector, it needs 4")
	_, err = l.Resolve(t.Context(), 200, 200, m)
	require.NoError(t, err)
}

// TestCountLeavesSelections: to count what a deletion would remove does not change which rows the
// next read of the same selector finds.
func TestCountLeavesSelections(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, []segment.Row{
		{Labels: laketest.Metric("m", "i", "a"), Floats: []segment.Float{{T: 10, V: 1}, {T: 20, V: 2}}},
		{Labels: laketest.Metric("m", "i", "b"), Floats: []segment.Float{{T: 10, V: 3}, {T: 90, V: 4}}},
	})
	read := func() []string {
		q, err := l.Querier(0, 100)
		require.NoError(t, err)
		return text(t, q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m")))
	}
	before := read()
	require.Len(t, before, 2)
	series, samples, _, err := l.Count(t.Context(), [][]*labels.Matcher{{laketest.Equal(model.MetricNameLabel, "m")}}, 0, 50)
	require.NoError(t, err)
	require.Equal(t, [2]int64{2, 3}, [2]int64{series, samples})
	require.Equal(t, before, read())
}
