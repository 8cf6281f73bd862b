package query_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestWholeTables: a table is read as a whole at once if there is ample room for it, and once many
// selectors have read rows of it if there is some.
func TestWholeTables(t *testing.T) {
	const series, selectors = 1000, 40 // about 72 kB of tables and samples
	store := laketest.NewDir(t)
	var rows []segment.Row
	for i := range series {
		rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 1000, V: float64(i)}}})
	}
	laketest.New(t, store, query.Settings{}).Write(tenant.Default, rows)
	for _, tc := range []struct {
		name  string
		bytes int64
		first int // selector that reads the whole table
	}{
		{"ample room", 1 << 20, 0},
		{"limited room", 192 << 10, 16},
		{"no room", 64 << 10, selectors},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := laketest.New(t, store, query.Settings{IndexCacheBytes: tc.bytes})
			for i := range selectors {
				got := query1(t, l, 0, 10_000, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprint(i)))
				require.Equal(t, []string{fmt.Sprintf(`{__name__="m", i="%d"}: 1000=%d`, i, i)}, got)
				whole := 0.0
				if i >= tc.first {
					whole = 1
				}
				require.Equal(t, whole, l.Counted("promlake_query_cache_misses_total", "index"), i)
			}
		})
	}
}

// TestFirstSelectorOfABlock: the first selector that reads a large table reads its rows alone if
// these are few, and the next one the whole table, for all others.
func TestFirstSelectorOfABlock(t *testing.T) {
	const series = 5000
	store := laketest.NewDir(t)
	var rows []segment.Row
	for i := range series {
		rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i), "half", fmt.Sprint(i%2)), Floats: []segment.Float{{T: 1000, V: float64(i)}}})
	}
	laketest.New(t, store, query.Settings{}).WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)
	one := func(l *laketest.Lake, i int) {
		got := query1(t, l, 0, 10_000, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprint(i)))
		require.Equal(t, []string{fmt.Sprintf(`{__name__="m", half="%d", i="%d"}: 1000=%d`, i%2, i, i)}, got)
	}
	whole := func(l *laketest.Lake) float64 { return l.Counted("promlake_query_cache_misses_total", "index") }

	l := laketest.New(t, store, query.Settings{})
	one(l, 1)
	require.Zero(t, whole(l))
	for i := range 10 {
		one(l, 4000+i)
		require.Equal(t, 1., whole(l))
	}
	one(l, 1)
	require.Len(t, query1(t, l, 0, 10_000, nil, laketest.Equal("half", "1")), series/2)
	require.Equal(t, 1., whole(l))

	l = laketest.New(t, store, query.Settings{})
	require.Len(t, query1(t, l, 0, 10_000, nil, laketest.Equal("half", "1")), series/2)
	require.Equal(t, 1., whole(l), "many rows")
}

// TestWholeTablesAtOnce: where there is some room, the tables of new objects are read as a whole at
// once after those of the objects before were worth it, until they are not any more.
func TestWholeTablesAtOnce(t *testing.T) {
	const series, selectors = 20, 20
	l := laketest.New(t, laketest.NewDir(t), query.Settings{IndexCacheBytes: 4 << 20})
	l.Write(tenant.Default, otherRows(12_000, 0)) // more than a quarter of the room for tables
	ask := func(i int) {
		got := query1(t, l, 0, 1000, nil, laketest.Equal(model.MetricNameLabel, "m"), laketest.Equal("i", fmt.Sprint(i)))
		require.Len(t, got, 1)
	}
	// first writes a segment and returns how many whole tables the first selector reads then.
	first := func(n int) float64 {
		var rows []segment.Row
		for i := range series {
			rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: int64(n), V: 1}}})
		}
		l.Write(tenant.Default, rows)
		before := l.Counted("promlake_query_cache_misses_total", "index")
		ask(0)
		return l.Counted("promlake_query_cache_misses_total", "index") - before
	}
	n := 0
	come := func(objects, readers int) (whole float64) {
		for range objects {
			whole += first(n)
			for i := range readers {
				ask(i)
			}
			n++
		}
		return whole
	}
	require.Zero(t, come(23, selectors))
	require.Equal(t, 20., come(20, selectors))
	require.Less(t, come(40, 1), 40., "only one selector reads them")
	require.Zero(t, come(10, 1))
}
