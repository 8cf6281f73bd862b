package laketest

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/replica"
)

// Replicated returns series as two replicas, and sometimes a third, have written them, which were
// down at different times, and what their lake must show: the samples that package replica chooses,
// without the label.
func Replicated(rng *rand.Rand) (stored, shown []segment.Row) {
	now := Now().UnixMilli()
	downs := map[string][][2]int64{
		"a": {{now - 150*minute, now - 120*minute}, {now - 60*minute, now - 60*minute + 20_000}, {now - 4*minute, now}},
		"b": {{now - 100*minute, now - 80*minute}, {now - 61*minute, now - 59*minute}},
		"c": {{now - 30*minute, now - 20*minute}},
	}
	rule := HA.Rule()
	for i, r := range append(PushRows(), histRow()) {
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
		shown = append(shown, Choose(rule, shownLabels, rows))
	}
	apart := segment.Row{Labels: Metric("m3", "i", "1", "job", "a", "__replica__", "a"), Floats: stored[0].Floats} // without a cluster
	return append(stored, apart), append(shown, apart)
}

// HA are the settings of a stage that shows one series for the replicas of Replicated.
var HA = replica.Settings{Dedup: true, ReplicaLabel: "__replica__", ClusterLabel: "cluster", FailoverTimeout: 30_000_000_000}

// histRow is a native histogram that is reset twice.
func histRow() segment.Row {
	now := Now().UnixMilli()
	r := segment.Row{Labels: Metric("h", "job", "a")}
	for i := range int64(700) {
		r.Hists = append(r.Hists, segment.Hist{T: now - 200*minute + i*15_000, H: tsdbutil.GenerateTestHistogram(i % 300)})
	}
	return r
}

// Choose returns what is shown of the replicas of a series.
func Choose(rule replica.Rule, lset labels.Labels, rows []segment.Row) segment.Row {
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
