package query_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/livetest"
)

// TestLiveCases answers every case of package live: by the samples that a selector returns, and by
// a range function, which the engine evaluates where there are histograms and a kernel elsewhere.
func TestLiveCases(t *testing.T) {
	base := int64(key.WindowOf(laketest.Now().UnixMilli()))
	for _, blocks := range []bool{false, true} {
		l := laketest.New(t, laketest.NewDir(t), query.Settings{})
		for i, c := range livetest.Cases(t) {
			t.Run(fmt.Sprintf("blocks=%v/%s", blocks, c.Name), func(t *testing.T) {
				ls := laketest.Metric("m1", "case", fmt.Sprint(i))
				for n, s := range c.Steps {
					if s.Delete != nil {
						l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("case", fmt.Sprint(i))}, base+1000*s.Delete[0], base+1000*s.Delete[1])
						continue
					}
					row := segment.Row{Labels: ls}
					for _, at := range s.Floats {
						v := float64(n)
						if slices.Contains(s.Stale, at) {
							v = math.Float64frombits(value.StaleNaN)
						}
						row.Floats = append(row.Floats, segment.Float{T: base + 1000*at, V: v, ST: int64(n)})
					}
					for _, at := range s.Hists {
						row.Hists = append(row.Hists, segment.Hist{T: base + 1000*at, ST: int64(n), H: tsdbutil.GenerateTestHistogram(int64(n))})
					}
					if blocks {
						l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h, GroupRows: 4}, []segment.Row{row})
					} else {
						l.Write(tenant.Default, []segment.Row{row})
					}
				}
				require.Equal(t, c.Want, liveSamples(t, l, i, base))
				var floats []promql.FPoint
				for _, w := range c.Want {
					if w.Kind == "float" {
						floats = append(floats, promql.FPoint{T: base + 1000*w.T, F: float64(w.Step)})
					}
				}
				res := l.Exec(t.Context(), laketest.Query{
					Text: fmt.Sprintf(`last_over_time(m1{case="%d"}[1s])`, i), Start: time.UnixMilli(base), End: time.UnixMilli(base + 60_000), Step: time.Second,
				})
				m, err := res.Matrix()
				require.NoError(t, err)
				var got []promql.FPoint
				for _, s := range m {
					got = append(got, s.Floats...)
				}
				require.Equal(t, floats, got)
			})
		}
	}
}

// liveSamples describes the samples that a selector returns as a case does.
func liveSamples(t *testing.T, l *laketest.Lake, series int, base int64) []livetest.Want {
	q, err := l.Querier(base, base+60_000)
	require.NoError(t, err)
	set := q.Select(t.Context(), true, nil, laketest.Equal("case", fmt.Sprint(series)))
	out := []livetest.Want{}
	for set.Next() {
		it := set.At().Iterator(nil)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			w := livetest.Want{T: (it.AtT() - base) / 1000, Step: int(it.AtST()), Kind: "hist"}
			if typ == chunkenc.ValFloat {
				w.Kind = "float"
				if _, v := it.At(); value.IsStaleNaN(v) {
					w.Kind = "stale"
				}
			}
			out = append(out, w)
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	return out
}
