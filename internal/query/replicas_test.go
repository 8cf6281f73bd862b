package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

const hour = 60 * minute

// TestReplicas: queries over replicas have the answers of queries over the samples that count, bit
// for bit, in SQL and in the engine, in every layout.
func TestReplicas(t *testing.T) {
	stored, shown := laketest.Replicated(rand.New(rand.NewPCG(7, 8)))
	texts := append(slices.Clone(laketest.PushedQueries), `histogram_count(rate(h[5m]))`, `histogram_sum(h)`, `sum(histogram_count(increase(h[20m])))`, `resets(h[30m])`,
		`sum(count_over_time({__name__=~"m.|b"}[7m]))`, `m3`, `sum by (__replica__) ({job="a"})`)
	replicas := len(slices.DeleteFunc(slices.Clone(stored), func(r segment.Row) bool { return !r.Labels.Has("__replica__") }))
	for i, c := range []struct {
		name   string
		push   query.Settings
		layout int
	}{{"in SQL, mixture", laketest.PushAll, 2}, {"by the engine, mixture", laketest.PushNone, 2}, {"in SQL, blocks", laketest.PushAll, 1}, {"as it comes, segments", query.Settings{}, 0}} {
		t.Run(c.name, func(t *testing.T) {
			reference := laketest.New(t, laketest.NewDir(t), c.push)
			reference.Write(tenant.Default, shown)
			c.push.HA = laketest.HA
			l := laketest.New(t, laketest.NewDir(t), c.push)
			laketest.Layouts[c.layout].Write(l, tenant.Default, stored)
			for k, text := range texts {
				if i > 0 && k%4 != i-1 { // the others have answered it
					continue
				}
				for _, a := range append(laketest.Ways(text), laketest.Query{Text: text, End: laketest.Now().Add(-4 * time.Hour)}) {
					want, got := reference.Exec(t.Context(), a), l.Exec(t.Context(), a)
					if laketest.Same(t, want, got, a); want.Err == nil {
						laketest.Identical(t, want, got, a)
					}
				}
			}
			raw := l.Exec(t.Context(), laketest.Query{Text: `count(last_over_time({__replica__=~".+"}[6h]))`, End: laketest.Now()})
			require.Contains(t, fmt.Sprint(raw.Value), fmt.Sprintf("=> %d @", replicas), "whoever asks for replicas gets them")
		})
	}
}

// TestReplicasElsewhere: what is not a query shows replicas once, too; deletions and counts see
// each.
func TestReplicasElsewhere(t *testing.T) {
	now := laketest.Now().UnixMilli()
	var rows []segment.Row
	for i, name := range []string{"a", "b"} {
		r := segment.Row{Labels: laketest.Metric("up", "cluster", "x", "__replica__", name)}
		for t := now - 10*minute + int64(i)*5000; t < now; t += 15_000 {
			r.Floats = append(r.Floats, segment.Float{T: t, V: 1})
		}
		r.Exemplars = append(r.Exemplars, laketest.Exemplar(now-minute+int64(i), 5, "same"), laketest.Exemplar(now-int64(i), float64(i), fmt.Sprint(i)))
		rows = append(rows, r)
	}
	for _, layout := range laketest.Layouts {
		t.Run(layout.Name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{HA: laketest.HA})
			layout.Write(l, tenant.Default, rows)
			q, err := l.Querier(now-hour, now)
			require.NoError(t, err)
			shown := laketest.Metric("up", "cluster", "x")
			require.Equal(t, []labels.Labels{shown}, labelsOf(t, q.Select(t.Context(), true, &storage.SelectHints{Start: now - hour, End: now, Func: "series"}, laketest.Equal("__name__", "up"))))
			names, _, err := q.LabelNames(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, []string{"__name__", "cluster"}, names)
			every := labels.MustNewMatcher(labels.MatchRegexp, "__replica__", ".*")
			names, _, err = q.LabelNames(t.Context(), nil, every)
			require.NoError(t, err)
			require.Equal(t, []string{"__name__", "__replica__", "cluster"}, names)
			values, _, err := q.LabelValues(t.Context(), "__replica__", nil)
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, values)
			require.Len(t, labelsOf(t, q.Select(t.Context(), true, nil, every)), 2)

			eq, err := l.ExemplarQuerier(t.Context())
			require.NoError(t, err)
			es, err := eq.Select(now-hour, now, []*labels.Matcher{laketest.Equal("__name__", "up")})
			require.NoError(t, err)
			require.Len(t, es, 1)
			require.Equal(t, shown, es[0].SeriesLabels)
			require.Len(t, es[0].Exemplars, 3)
			es, err = eq.Select(now-hour, now, []*labels.Matcher{every})
			require.NoError(t, err)
			require.Len(t, es, 2)

			stats, err := l.Stats(t.Context(), 10)
			require.NoError(t, err)
			require.EqualValues(t, 2, stats.NumSeries)
			series, _, _, err := l.Count(t.Context(), [][]*labels.Matcher{{laketest.Equal("__name__", "up")}}, now-hour, now)
			require.NoError(t, err)
			require.EqualValues(t, 2, series)

			l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("__replica__", "a")}, math.MinInt64, math.MaxInt64)
			l2 := laketest.New(t, l.Store, query.Settings{HA: laketest.HA})
			got := laketest.SeriesOf(t, l2.Exec(t.Context(), laketest.Query{Text: "up[1h]", End: laketest.Now()}))
			require.Len(t, got[shown.String()], len(rows[1].Floats), "what is left are the samples of the other")
		})
	}
}

func labelsOf(t *testing.T, set storage.SeriesSet) (out []labels.Labels) {
	for set.Next() {
		out = append(out, set.At().Labels())
	}
	require.NoError(t, set.Err())
	return out
}

// TestReplicasAcrossWindows: what counts in a range depends on segments of a window that the range
// does not touch.
func TestReplicasAcrossWindows(t *testing.T) {
	window := laketest.Now().Truncate(2 * time.Hour)
	var rows []segment.Row
	for i, first := range []int{-122, -125} {
		r := segment.Row{Labels: laketest.Metric("up", "__replica__", fmt.Sprint(i), "cluster", "x")}
		for sec := first; sec < 60; sec += 15 {
			r.Floats = append(r.Floats, segment.Float{T: window.UnixMilli() + int64(sec)*1000, V: float64(sec)})
		}
		rows = append(rows, r)
	}
	for _, s := range []query.Settings{laketest.PushAll, laketest.PushNone} {
		s.HA = laketest.HA
		l := laketest.New(t, laketest.NewDir(t), s)
		l.Write(tenant.Default, rows)
		// The first replica has samples at -2 and 13, the second one at 10.
		got := laketest.SeriesOf(t, l.Exec(t.Context(), laketest.Query{Text: `count_over_time(up[15s])`, End: window.Add(20 * time.Second)}))
		require.Equal(t, map[string]map[int64]float64{`{cluster="x"}`: {window.UnixMilli() + 20_000: 1}}, got)
		got = laketest.SeriesOf(t, l.Exec(t.Context(), laketest.Query{Text: `sum(up) + on() sum(up offset 1s)`, End: window.Add(20 * time.Second)}))
		require.Equal(t, map[string]map[int64]float64{`{}`: {window.UnixMilli() + 20_000: 26}}, got)
	}
}

// TestReplicasInBatches: a query whose series are read in several batches reads no more around its
// range than one whose series are read at once.
func TestReplicasInBatches(t *testing.T) {
	const pairs, every = 400, 10_000 // more than 128 Ki samples of all, see lookup.Resolution.Batches
	now := laketest.Now().UnixMilli()
	var rows []segment.Row
	for i := range 2 * pairs {
		row := segment.Row{Labels: laketest.Metric("m", "cluster", "x", "__replica__", fmt.Sprint(i%2), "i", fmt.Sprint(i/2))}
		for at := now - 4*hour; at < now; at += every {
			row.Floats = append(row.Floats, segment.Float{T: at, V: float64(at)})
		}
		rows = append(rows, row)
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MinPushedSamples: -1, HA: laketest.HA})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	read := func(text string) float64 {
		before := l.Counted("promlake_query_samples_read_total")
		require.NoError(t, l.Exec(t.Context(), laketest.Query{Text: text, End: laketest.Now().Add(-2 * time.Hour)}).Err)
		return l.Counted("promlake_query_samples_read_total") - before
	}
	require.Equal(t, pairs*read(`sum(rate(m{i="7"}[5m]))`), read(`sum(rate(m[5m]))`))
}
