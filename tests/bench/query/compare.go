package query

import (
	"fmt"
	"slices"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// comparisons are what the data costs, the medians of warm questions, the times of cold ones, and
// the mix.
func (r *report) comparisons() (out []table.Comparison) {
	own, peer := slices.Index(r.Targets, server.Promlake), slices.Index(r.Targets, server.VictoriaMetrics)
	add := func(name, unit string, of func(k int) float64) {
		c := table.Comparison{Name: name, Unit: unit, Promlake: of(own)}
		if peer >= 0 {
			c.Peer = of(peer)
		}
		out = append(out, c)
	}
	name, mix := r.Scale.name(r.Prepared[own].Life.Series), "dashboard mix, 8 clients"
	if r.Scale.Set == live {
		mix = name + ": " + mix
	}
	if r.Scale.Set == "" {
		add("data of the mixed queries, all of the disk", "MB", func(k int) float64 { return float64(r.Prepared[k].Disk) / 1e6 })
	} else {
		var victoria *disk.Life
		if peer >= 0 {
			victoria = &r.Prepared[peer].Life
		}
		out = disk.Compare(name, &r.Prepared[own].Life, victoria)
	}
	for i, q := range r.Questions {
		if r.Scale.Set == live || r.Scale.described != nil {
			add(q.name(), "CPU ms", func(k int) float64 { return 1000 * r.Cells[i][k].CPU })
		}
		add(q.name(), "ms", func(k int) float64 { m, _ := table.Median(r.Cells[i][k].Warm); return 1000 * m })
		if r.Cells[i][own].Cold > 0 {
			add(q.name()+", cold", "ms", func(k int) float64 { return 1000 * r.Cells[i][k].Cold })
		}
	}
	for i, t := range r.Trips {
		out = append(out, table.Comparison{Name: r.Questions[i].name() + ", cold over a bucket", Unit: "round trips", Promlake: float64(t.Trips)})
	}
	if r.PeakRSS != nil {
		add(name+": queries, peak memory", "MB", func(k int) float64 { return float64(r.PeakRSS[k]) / 1e6 })
	}
	if r.RSS != nil {
		add(name+": memory", "MB", func(k int) float64 { return float64(r.RSS[k]) / 1e6 })
	}
	if r.Mix != nil {
		add(mix, "CPU ms per query", func(k int) float64 { return r.Mix[k].CPU })
		add(mix, "ms from answer to answer", func(k int) float64 { return 1000 / r.Mix[k].perSecond() })
		add(mix+", 99th percentile", "ms", func(k int) float64 { return r.Mix[k].P99 })
	}
	return out
}

// name names the data.
func (s scale) name(series int64) string {
	switch s.Set {
	case hosts:
		return fmt.Sprintf("%s series × %s samples", table.Count(series), table.Count(int64(s.Samples)))
	case live:
		return fmt.Sprintf("live hour, %s series × %s samples", table.Count(series), table.Count(int64(s.Samples)))
	case "":
		return "mixed data"
	}
	return s.described.Name
}
