package query_test

import (
	"fmt"
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
	"github.com/promlake/promlake/tests/support/segmenttest"
)

func TestResolve(t *testing.T) {
	floats := func(ts ...int64) (out []segment.Float) {
		for _, at := range ts {
			out = append(out, segment.Float{T: at, V: 1})
		}
		return out
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	a, b, c := laketest.Metric("m", "i", "a"), laketest.Metric("m", "i", "b"), laketest.Metric("m", "i", "c")
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, []segment.Row{
		{Labels: c, Floats: floats(10, 20, 30, 40, 50)}, {Labels: a, Floats: floats(10)}, {Labels: laketest.Metric("other"), Floats: floats(10)},
	})
	l.Write(tenant.Default, []segment.Row{
		{Labels: a, Floats: floats(60, 70)}, {Labels: b, Floats: floats(60, 70, 80), Hists: []segment.Hist{{T: 90, H: tsdbutil.GenerateTestHistogram(1)}}},
	})
	m := laketest.Equal(model.MetricNameLabel, "m")

	r, err := l.Resolve(t.Context(), 0, 100, m)
	require.NoError(t, err)
	require.Equal(t, []labels.Labels{a, b, c}, r.Labels)
	require.Equal(t, [][][5]int64{{{0, 0, 0, 1, 0}, {1, 0, -1, 2, 0}}, {{1, 1, -1, 3, 1}}, {{0, 1, 1, 5, 0}}}, r.Places)
	require.Equal(t, int64(1+2+3+5), r.Rows)
	require.True(t, r.Hists)
	require.False(t, r.Starts)

	r, err = l.Resolve(t.Context(), 25, 45, m)
	require.NoError(t, err)
	require.Equal(t, []labels.Labels{c}, r.Labels, "the others have nothing there")
	require.Equal(t, 1, r.Objects)
	require.Equal(t, int64(3), r.Rows, "five samples in 40 ms, evenly")
	require.False(t, r.Hists)

	r, err = l.Resolve(t.Context(), 0, 100, m, laketest.Equal("i", "x"))
	require.NoError(t, err)
	require.Empty(t, r.Labels)

	l.Write(tenant.Default, []segment.Row{{Labels: a, Floats: []segment.Float{{T: 95, ST: 5, V: 1}}}})
	r, err = l.Resolve(t.Context(), 0, 100, m)
	require.NoError(t, err)
	require.True(t, r.Starts)
}

// TestResolveIDs: series are told apart by their labels. With IDs of one bit, different label sets
// have equal IDs, and a block replaces those that are taken.
func TestResolveIDs(t *testing.T) {
	rows := func(ids ...int) (out []segment.Row) {
		for _, i := range ids {
			out = append(out, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: int64(i), V: 1}}})
		}
		return out
	}
	even, odd := 0, 0 // one series of either id
	for i := range 100 {
		if r := laketest.Metric("m", "i", fmt.Sprint(i)); segmenttest.ID(r)&1 == 0 {
			even = i
		} else {
			odd = i
		}
	}
	for _, tc := range []struct {
		name   string
		write  func(l *laketest.Lake)
		series []int
		places int // of each
	}{
		{"two series, two ids", func(l *laketest.Lake) { l.Write(tenant.Default, rows(even, odd)) }, []int{even, odd}, 1},
		{"three series, two ids", func(l *laketest.Lake) { l.Write(tenant.Default, rows(0, 1, 2)) }, []int{0, 1, 2}, 1},
		{"in two segments", func(l *laketest.Lake) {
			for i := range 3 {
				l.Write(tenant.Default, rows(i))
			}
		}, []int{0, 1, 2}, 1},
		{"the same twice", func(l *laketest.Lake) {
			l.Write(tenant.Default, rows(even, odd))
			l.Write(tenant.Default, rows(even, odd))
		}, []int{even, odd}, 2},
		{"a series under two ids", func(l *laketest.Lake) {
			l.Write(tenant.Default, rows(even))
			l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows(even))
		}, []int{even}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{})
			l.Rewrite = truncateIDs(t)
			tc.write(l)
			r, err := l.Resolve(t.Context(), 0, 100, laketest.Equal(model.MetricNameLabel, "m"))
			require.NoError(t, err)
			var want []labels.Labels
			for _, row := range rows(tc.series...) {
				want = append(want, row.Labels)
			}
			slices.SortFunc(want, labels.Compare)
			require.Equal(t, want, r.Labels)
			for _, at := range r.Places {
				require.Len(t, at, tc.places)
			}
		})
	}
}
