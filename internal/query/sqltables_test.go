package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
)

// TestSQLTables: the tables beside samples have what was written and not deleted.
func TestSQLTables(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(13, 14)))
	l := newLake(t, newDirStore(t), query.Settings{})
	writeMixture(l, tenant.Default, rows)
	deleteAll(l)
	var hists, exs []string
	for _, r := range without(rows) {
		row := func(t int64, v float64) string { return rowOf(r.Labels, t, v) }
		for _, h := range r.Hists {
			f := h.H.ToFloat(nil)
			hists = append(hists, fmt.Sprintf("%s | %x | %s", row(h.T, f.Count), math.Float64bits(f.Sum), f))
		}
		for _, e := range r.Exemplars {
			exs = append(exs, fmt.Sprintf("%s | {trace_id=%q}", row(e.Ts, e.Value), e.Labels.Get("trace_id")))
		}
	}
	slices.Sort(hists)
	slices.Sort(exs)
	require.NotEmpty(t, hists)
	require.NotEmpty(t, exs)
	require.Equal(t, hists, l.sql("FROM histograms"))
	require.Equal(t, slices.Compact(exs), l.sql("FROM exemplars"))
	require.Equal(t, l.sql("SELECT ts, count FROM (FROM histograms LIMIT 1000000) WHERE metric = 'm4' AND labels['i'] = '9'"),
		l.sql("SELECT ts, count FROM histograms WHERE metric = 'm4' AND labels['i'] = '9'"))
	require.Equal(t, l.sql("SELECT DISTINCT metric, labels FROM (SELECT metric, labels FROM samples UNION ALL SELECT metric, labels FROM histograms)"),
		l.sql("FROM series WHERE labels['i'] NOT IN ('3', '19')"), "both have all samples deleted")

	snap, err := catalog.Take(t.Context(), l.store, tenant.Default, key.MinTime, key.MaxTime)
	require.NoError(t, err)
	var blocks, segments []string
	for _, b := range snap.Blocks {
		blocks = append(blocks, fmt.Sprintf("%s | %s | %d | %d | %d", b.Level, b.ID, int64(b.Window)*1000, b.MaxT*1000, b.Samples))
	}
	for _, s := range snap.Segments {
		segments = append(segments, fmt.Sprintf("%s | %d | %d", s.ID, int64(s.Window)*1000, s.Size))
	}
	slices.Sort(blocks)
	slices.Sort(segments)
	require.Equal(t, blocks, l.sql("SELECT level, id, window_start, max_ts, samples FROM blocks"))
	require.Equal(t, segments, l.sql("SELECT id, window_start, bytes FROM segments"))
	require.NotEmpty(t, segments)
	now := testNow().UnixMilli()
	l.write(tenant.Default, []segment.Row{{Labels: metric("m1"), Floats: []segment.Float{{T: now, V: 1}}}}, segment.Metadata{Metric: "m1", Type: "counter", Help: "It's help.", Unit: "s"})
	l = newLake(t, l.store, query.Settings{})
	require.Equal(t, []string{"m1 | counter | s | It's help."}, l.sql("FROM metadata"))
	require.Equal(t, []string{"blocks", "exemplars", "histograms", "marked_samples", "metadata", "rollup_1h", "rollup_5m", "samples", "segments", "series", "stored_samples", "stored_series"}, l.sql("SHOW TABLES"))
}
