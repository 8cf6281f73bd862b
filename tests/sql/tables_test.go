package sql

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
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSQLTables: the tables beside samples have what was written and not deleted.
func TestSQLTables(t *testing.T) {
	rows := laketest.RandomRows(rand.New(rand.NewPCG(13, 14)))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, rows)
	laketest.DeleteAll(l)
	var hists, exs []string
	for _, r := range laketest.Without(rows) {
		row := func(t int64, v float64) string { return laketest.RowOf(r.Labels, t, v) }
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
	require.Equal(t, hists, l.Rows("FROM histograms"))
	require.Equal(t, slices.Compact(exs), l.Rows("FROM exemplars"))
	require.Equal(t, l.Rows("SELECT ts, count FROM (FROM histograms LIMIT 1000000) WHERE metric = 'm4' AND labels['i'] = '9'"),
		l.Rows("SELECT ts, count FROM histograms WHERE metric = 'm4' AND labels['i'] = '9'"))
	require.Equal(t, l.Rows("SELECT DISTINCT metric, labels FROM (SELECT metric, labels FROM samples UNION ALL SELECT metric, labels FROM histograms)"),
		l.Rows("FROM series WHERE labels['i'] NOT IN ('3', '19')"), "both have all samples deleted")

	snap, err := catalog.Take(t.Context(), l.Store, tenant.Default, key.MinTime, key.MaxTime)
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
	require.Equal(t, blocks, l.Rows("SELECT level, id, window_start, max_ts, samples FROM blocks"))
	require.Equal(t, segments, l.Rows("SELECT id, window_start, bytes FROM segments"))
	require.NotEmpty(t, segments)
	now := laketest.Now().UnixMilli()
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m1"), Floats: []segment.Float{{T: now, V: 1}}}}, segment.Metadata{Metric: "m1", Type: "counter", Help: "It's help.", Unit: "s"})
	l = laketest.New(t, l.Store, query.Settings{})
	require.Equal(t, []string{"m1 | counter | s | It's help."}, l.Rows("FROM metadata"))
	require.Equal(t, []string{"blocks", "exemplars", "histograms", "marked_samples", "metadata", "rollup_1h", "rollup_5m", "samples", "segments", "series", "stored_samples", "stored_series"}, l.Rows("SHOW TABLES"))
}
