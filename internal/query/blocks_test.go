package query_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/laketest"
)

const minute = 60_000

// expected renders the samples of rows within [mint, maxt] as text does, without hints.
func expected(rows []segment.Row, mint, maxt int64, ms ...*labels.Matcher) []string {
	type at struct {
		t int64
		s string
	}
	lines := map[string][]at{}
	for _, r := range rows {
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(r.Labels.Get(m.Name)) }) {
			continue
		}
		for _, f := range r.Floats {
			s := fmt.Sprintf(" %d", f.T)
			if f.ST != 0 {
				s += fmt.Sprintf("<%d", f.ST)
			}
			lines[r.Labels.String()] = append(lines[r.Labels.String()], at{f.T, s + fmt.Sprintf("=%x", math.Float64bits(f.V))})
		}
		for _, h := range r.Hists {
			lines[r.Labels.String()] = append(lines[r.Labels.String()], at{h.T, fmt.Sprintf(" %d=H%s", h.T, h.H)})
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(lines)) {
		line := k + ":"
		slices.SortFunc(lines[k], func(a, b at) int { return cmp.Compare(a.t, b.t) })
		for _, x := range lines[k] {
			if x.t >= mint && x.t <= maxt {
				line += x.s
			}
		}
		if line != k+":" {
			out = append(out, line)
		}
	}
	return out
}

// exact renders a series set bit for bit, without hints.
func exact(t *testing.T, set storage.SeriesSet) []string {
	t.Helper()
	var out []string
	for set.Next() {
		line := set.At().Labels().String() + ":"
		it := set.At().Iterator(nil)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			line += fmt.Sprintf(" %d", it.AtT())
			if it.AtST() != 0 {
				line += fmt.Sprintf("<%d", it.AtST())
			}
			switch typ {
			case chunkenc.ValHistogram:
				_, h := it.AtHistogram(nil)
				line += "=H" + h.String()
			case chunkenc.ValFloatHistogram:
				_, h := it.AtFloatHistogram(nil)
				line += "=F" + h.String()
			default:
				_, v := it.At()
				line += fmt.Sprintf("=%x", math.Float64bits(v))
			}
		}
		require.NoError(t, it.Err())
		out = append(out, line)
	}
	require.NoError(t, set.Err())
	slices.Sort(out)
	return out
}

// answers are the results of the storage interfaces for everything in a range that holds all
// samples.
func answers(t *testing.T, l *laketest.Lake) map[string]any {
	t.Helper()
	ctx := context.Background()
	now := laketest.Now().UnixMilli()
	from := now - 24*60*minute
	out := map[string]any{}
	q, err := l.Querier(from, now)
	require.NoError(t, err)
	all := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")
	hints := &storage.SelectHints{Start: from, End: now, Func: "series"}
	for _, ms := range [][]*labels.Matcher{{all}, {laketest.Equal("i", "3")}, {laketest.Equal("job", "a"), all}, {laketest.Equal("Odd name", "x")}} {
		out["series "+fmt.Sprint(ms)] = text(t, q.Select(ctx, true, hints, ms...))
		names, _, err := q.LabelNames(ctx, nil, ms...)
		require.NoError(t, err)
		out["names "+fmt.Sprint(ms)] = names
		for _, n := range []string{"i", "job", "Odd name", model.MetricNameLabel} {
			values, _, err := q.LabelValues(ctx, n, nil, ms...)
			require.NoError(t, err)
			out["values "+n+fmt.Sprint(ms)] = values
		}
	}
	eq, err := l.ExemplarQuerier(ctx)
	require.NoError(t, err)
	out["exemplars"], err = eq.Select(from, now, []*labels.Matcher{laketest.Equal("job", "a")}, []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "m1")})
	require.NoError(t, err)
	out["metadata"], err = l.Metadata(ctx, "")
	require.NoError(t, err)
	out["one family"], err = l.Metadata(ctx, "m1")
	require.NoError(t, err)
	stats, err := l.Stats(ctx, 100)
	require.NoError(t, err)
	out["stats"] = []any{stats.NumSeries, stats.IndexPostingStats.CardinalityMetricsStats}
	return out
}

// TestLayoutsAgree: segments, blocks and any mixture of them, with duplicates of lower rank, yield
// the answer of a naive reader, with and without deletions.
func TestLayoutsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	rows := laketest.RandomRows(rng)
	meta := []segment.Metadata{{Metric: "m1", Type: "gauge", Help: "One.", Unit: "s"}, {Metric: "m2", Type: "counter", Help: "Two."}}
	now := laketest.Now().UnixMilli()
	all := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")
	for _, deleted := range []bool{false, true} {
		want := laketest.Pick(deleted, laketest.Without(rows), rows)
		var first map[string]any
		for _, layout := range laketest.Layouts {
			t.Run(fmt.Sprintf("deleted=%v/%s", deleted, layout.Name), func(t *testing.T) {
				l := laketest.New(t, laketest.NewDir(t), query.Settings{})
				layout.Write(l, tenant.Default, rows, meta...)
				if deleted {
					laketest.DeleteAll(l)
				}
				for range 25 {
					mint := now - rng.Int64N(25*60)*minute
					maxt := mint + rng.Int64N(10*60)*minute
					ms := [][]*labels.Matcher{{all}, {laketest.Equal("job", "b")}, {laketest.Equal(model.MetricNameLabel, "m4")}, {laketest.Equal("i", fmt.Sprint(rng.IntN(40)))}}[rng.IntN(4)]
					q, err := l.Querier(mint, maxt)
					require.NoError(t, err)
					require.Equal(t, expected(want, mint, maxt, ms...), exact(t, q.Select(t.Context(), true, nil, ms...)), "%d to %d %s", mint, maxt, ms)
				}
				got := answers(t, l)
				if first == nil {
					first = got
					require.NotEmpty(t, got["exemplars"])
					require.Equal(t, map[string][]metadata.Metadata{"m1": {{Type: "gauge", Help: "One.", Unit: "s"}}}, got["one family"])
				}
				require.Equal(t, first, got)
			})
		}
	}
}

// TestWrittenAfterDeletion: a tombstone does not hide newer samples.
func TestWrittenAfterDeletion(t *testing.T) {
	now := laketest.Now().UnixMilli()
	row := func(i string, v float64) []segment.Row {
		return []segment.Row{
			{Labels: laketest.Metric("m1", "i", i), Floats: []segment.Float{{T: now - 50*minute, V: v}, {T: now - 40*minute, V: v}}},
			{Labels: laketest.Metric("m1", "i", i, "kind", "h"), Hists: []segment.Hist{{T: now - 50*minute, H: tsdbutil.GenerateTestHistogram(int64(v))}}},
		}
	}
	for _, layout := range laketest.Layouts {
		t.Run(layout.Name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{})
			layout.Write(l, tenant.Default, row("3", 1))
			layout.Write(l, tenant.Default, row("4", 1))
			laketest.DeleteAll(l)
			values := func() []string {
				q, err := l.Querier(now-60*minute, now)
				require.NoError(t, err)
				vals, _, err := q.LabelValues(t.Context(), "i", nil)
				require.NoError(t, err)
				set := exact(t, q.Select(t.Context(), true, &storage.SelectHints{Start: now - 60*minute, End: now, Func: "series"}, laketest.Equal(model.MetricNameLabel, "m1")))
				require.Len(t, set, 2*len(vals))
				return vals
			}
			require.Equal(t, []string{"4"}, values())
			l.Seq += uint64(2 * time.Hour.Milliseconds())
			layout.Write(l, tenant.Default, row("3", 2))
			require.Equal(t, []string{"3", "4"}, values())
			q, err := l.Querier(now-60*minute, now)
			require.NoError(t, err)
			require.Equal(t, expected(row("3", 2), 0, now), exact(t, q.Select(t.Context(), true, nil, laketest.Equal("i", "3"))))
		})
	}
}

// TestAppliedTombstone: a tombstone spares a block that it was applied to, whatever the block's
// rank.
func TestAppliedTombstone(t *testing.T) {
	now := laketest.Now().UnixMilli()
	rows := []segment.Row{{Labels: laketest.Metric("m1", "i", "3"), Floats: []segment.Float{{T: now - 50*minute, V: 1}}}}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)
	laketest.DeleteAll(l)
	require.Empty(t, query1(t, l, now-60*minute, now, nil, laketest.Equal("i", "3")))
	l.Commit(tenant.Default, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m.Blocks = slices.Clone(m.Blocks)
		m.Blocks[0].DeletesThrough = m.LastTombstone
		return m, nil
	})
	require.Len(t, query1(t, l, now-60*minute, now, nil, laketest.Equal("i", "3")), 1)
	require.Len(t, query1(t, l, now-60*minute, now, &storage.SelectHints{Start: now - 60*minute, End: now, Func: "series"}, laketest.Equal("i", "3")), 1)
}
