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
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/replica"
)

const hour = 60 * minute

// replicated returns series as two replicas, and sometimes a third, have written them, which were
// down at different times, and what their lake must show: the samples that package replica chooses,
// without the label.
func replicated(rng *rand.Rand) (stored, shown []segment.Row) {
	now := testNow().UnixMilli()
	downs := map[string][][2]int64{
		"a": {{now - 150*minute, now - 120*minute}, {now - 60*minute, now - 60*minute + 20_000}, {now - 4*minute, now}},
		"b": {{now - 100*minute, now - 80*minute}, {now - 61*minute, now - 59*minute}},
		"c": {{now - 30*minute, now - 20*minute}},
	}
	rule := ha.Rule()
	for i, r := range append(pushRows(), histRow()) {
		shownLabels := labels.NewBuilder(r.Labels).Set("cluster", "x").Labels()
		var rows []segment.Row
		for k, name := range []string{"a", "b", "c"}[:2+i%2] {
			row := segment.Row{Labels: labels.NewBuilder(shownLabels).Set("__replica__", name).Labels()}
			late := int64(k)*4_000 + rng.Int64N(1000)
			up := func(t int64) bool {
				return !slices.ContainsFunc(downs[name], func(d [2]int64) bool { return d[0] <= t && t <= d[1] })
			}
			for _, f := range r.Floats {
				if f.T += late; up(f.T) && rng.IntN(50) > 0 {
					row.Floats = append(row.Floats, segment.Float{T: f.T, V: f.V + float64(k)})
				}
			}
			for _, h := range r.Hists {
				if h.T += late; up(h.T) {
					row.Hists = append(row.Hists, h)
				}
			}
			rows = append(rows, row)
		}
		if i%5 == 0 { // from a time before there were replicas
			row := segment.Row{Labels: shownLabels}
			for t := now - 6*hour; t < now-3*hour; t += 15_000 {
				row.Floats = append(row.Floats, segment.Float{T: t, V: float64(t % 1000)})
			}
			rows = append([]segment.Row{row}, rows...)
		}
		stored = append(stored, rows...)
		shown = append(shown, choose(rule, shownLabels, rows))
	}
	apart := segment.Row{Labels: metric("m3", "i", "1", "job", "a", "__replica__", "a"), Floats: stored[0].Floats} // without a cluster
	return append(stored, apart), append(shown, apart)
}

var ha = replica.Settings{Dedup: true, ReplicaLabel: "__replica__", ClusterLabel: "cluster", FailoverTimeout: 30_000_000_000}

// histRow is a native histogram that is reset twice.
func histRow() segment.Row {
	now := testNow().UnixMilli()
	r := segment.Row{Labels: metric("h", "job", "a")}
	for i := range int64(700) {
		r.Hists = append(r.Hists, segment.Hist{T: now - 200*minute + i*15_000, H: tsdbutil.GenerateTestHistogram(i % 300)})
	}
	return r
}

// choose returns what is shown of the replicas of a series.
func choose(rule replica.Rule, lset labels.Labels, rows []segment.Row) segment.Row {
	of := make([]replica.Series, len(rows))
	for i, r := range rows {
		for _, f := range r.Floats {
			of[i].T, of[i].V = append(of[i].T, f.T), append(of[i].V, f.V)
		}
		for _, h := range r.Hists {
			of[i].T, of[i].V = append(of[i].T, h.T), append(of[i].V, float64(h.H.Count))
		}
	}
	out := segment.Row{Labels: lset}
	for _, s := range rule.Choose(nil, of, math.MinInt64, math.MaxInt64) {
		if len(rows[s.Of].Floats) > 0 {
			out.Floats = append(out.Floats, rows[s.Of].Floats[s.From:s.To]...)
		} else {
			out.Hists = append(out.Hists, rows[s.Of].Hists[s.From:s.To]...)
		}
	}
	return out
}

// TestReplicas: queries over replicas have the answers of queries over the samples that count, bit
// for bit, in SQL and in the engine, in every layout.
func TestReplicas(t *testing.T) {
	stored, shown := replicated(rand.New(rand.NewPCG(7, 8)))
	texts := append(slices.Clone(pushedQueries), `histogram_count(rate(h[5m]))`, `histogram_sum(h)`, `sum(histogram_count(increase(h[20m])))`, `resets(h[30m])`,
		`sum(count_over_time({__name__=~"m.|b"}[7m]))`, `m3`, `sum by (__replica__) ({job="a"})`)
	replicas := len(slices.DeleteFunc(slices.Clone(stored), func(r segment.Row) bool { return !r.Labels.Has("__replica__") }))
	for i, c := range []struct {
		name   string
		push   query.Settings
		layout int
	}{{"in SQL, mixture", pushAll, 2}, {"by the engine, mixture", pushNone, 2}, {"in SQL, blocks", pushAll, 1}, {"as it comes, segments", query.Settings{}, 0}} {
		t.Run(c.name, func(t *testing.T) {
			reference := newLake(t, newDirStore(t), c.push)
			reference.write(tenant.Default, shown)
			c.push.HA = ha
			l := newLake(t, newDirStore(t), c.push)
			layouts[c.layout].write(l, tenant.Default, stored)
			for k, text := range texts {
				if i > 0 && k%4 != i-1 { // the others have answered it
					continue
				}
				for _, a := range append(ways(text), asked{text: text, end: testNow().Add(-4 * time.Hour)}) {
					want, got := reference.exec(t.Context(), a), l.exec(t.Context(), a)
					if same(t, want, got, a); want.Err == nil {
						identical(t, want, got, a)
					}
				}
			}
			raw := l.exec(t.Context(), asked{text: `count(last_over_time({__replica__=~".+"}[6h]))`, end: testNow()})
			require.Contains(t, fmt.Sprint(raw.Value), fmt.Sprintf("=> %d @", replicas), "whoever asks for replicas gets them")
		})
	}
}

// TestReplicasElsewhere: what is not a query shows replicas once, too; deletions and counts see
// each.
func TestReplicasElsewhere(t *testing.T) {
	now := testNow().UnixMilli()
	var rows []segment.Row
	for i, name := range []string{"a", "b"} {
		r := segment.Row{Labels: metric("up", "cluster", "x", "__replica__", name)}
		for t := now - 10*minute + int64(i)*5000; t < now; t += 15_000 {
			r.Floats = append(r.Floats, segment.Float{T: t, V: 1})
		}
		r.Exemplars = append(r.Exemplars, ex(now-minute+int64(i), 5, "same"), ex(now-int64(i), float64(i), fmt.Sprint(i)))
		rows = append(rows, r)
	}
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			l := newLake(t, newDirStore(t), query.Settings{HA: ha})
			layout.write(l, tenant.Default, rows)
			q, err := l.Querier(now-hour, now)
			require.NoError(t, err)
			shown := metric("up", "cluster", "x")
			require.Equal(t, []labels.Labels{shown}, labelsOf(t, q.Select(t.Context(), true, &storage.SelectHints{Start: now - hour, End: now, Func: "series"}, equal("__name__", "up"))))
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
			es, err := eq.Select(now-hour, now, []*labels.Matcher{equal("__name__", "up")})
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
			series, _, _, err := l.Count(t.Context(), [][]*labels.Matcher{{equal("__name__", "up")}}, now-hour, now)
			require.NoError(t, err)
			require.EqualValues(t, 2, series)

			l.delete(tenant.Default, []*labels.Matcher{equal("__replica__", "a")}, math.MinInt64, math.MaxInt64)
			l2 := newLake(t, l.store, query.Settings{HA: ha})
			got := seriesOf(t, l2.exec(t.Context(), asked{text: "up[1h]", end: testNow()}))
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
	window := testNow().Truncate(2 * time.Hour)
	var rows []segment.Row
	for i, first := range []int{-122, -125} {
		r := segment.Row{Labels: metric("up", "__replica__", fmt.Sprint(i), "cluster", "x")}
		for sec := first; sec < 60; sec += 15 {
			r.Floats = append(r.Floats, segment.Float{T: window.UnixMilli() + int64(sec)*1000, V: float64(sec)})
		}
		rows = append(rows, r)
	}
	for _, s := range []query.Settings{pushAll, pushNone} {
		s.HA = ha
		l := newLake(t, newDirStore(t), s)
		l.write(tenant.Default, rows)
		// The first replica has samples at -2 and 13, the second one at 10.
		got := seriesOf(t, l.exec(t.Context(), asked{text: `count_over_time(up[15s])`, end: window.Add(20 * time.Second)}))
		require.Equal(t, map[string]map[int64]float64{`{cluster="x"}`: {window.UnixMilli() + 20_000: 1}}, got)
		got = seriesOf(t, l.exec(t.Context(), asked{text: `sum(up) + on() sum(up offset 1s)`, end: window.Add(20 * time.Second)}))
		require.Equal(t, map[string]map[int64]float64{`{}`: {window.UnixMilli() + 20_000: 26}}, got)
	}
}

// TestReplicasInBatches: a query whose series are read in several batches reads no more around its
// range than one whose series are read at once.
func TestReplicasInBatches(t *testing.T) {
	const pairs, every = 400, 10_000 // more than 128 Ki samples of all, see lookup.Resolution.Batches
	now := testNow().UnixMilli()
	var rows []segment.Row
	for i := range 2 * pairs {
		row := segment.Row{Labels: metric("m", "cluster", "x", "__replica__", fmt.Sprint(i%2), "i", fmt.Sprint(i/2))}
		for at := now - 4*hour; at < now; at += every {
			row.Floats = append(row.Floats, segment.Float{T: at, V: float64(at)})
		}
		rows = append(rows, row)
	}
	l := newLake(t, newDirStore(t), query.Settings{MinPushedSamples: -1, HA: ha})
	l.writeBlocks(tenant.Default, blockShape{level: key.L24h}, rows)
	read := func(text string) float64 {
		before := l.counted("promlake_query_samples_read_total")
		require.NoError(t, l.exec(t.Context(), asked{text: text, end: testNow().Add(-2 * time.Hour)}).Err)
		return l.counted("promlake_query_samples_read_total") - before
	}
	require.Equal(t, pairs*read(`sum(rate(m{i="7"}[5m]))`), read(`sum(rate(m[5m]))`))
}
