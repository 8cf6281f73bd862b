package ingest

import (
	"slices"

	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// compared is a figure of one run under the load of a comparison.
type compared struct {
	name, unit string
	of         func(run) (float64, bool)
	// own: only Promlake has the figure
	own bool
}

// comparisons are the figures of the servers under a load with a name.
func comparisons(name string, runs []run) (out []table.Comparison) {
	cpu := ofProcess(cpuPerMillion)
	figures := []compared{{"processor", cpuUnit, cpu, false}, {"peak memory", "MB", ofProcess(peakMB), false}}
	if slices.ContainsFunc(runs, func(r run) bool { return r.Compacted != nil }) {
		figures = append(figures, figuresOfCompaction(cpu)...)
	}
	for _, f := range figures {
		c := table.Comparison{Name: name + ": " + f.name, Unit: f.unit}
		c.Promlake, _ = median(of(runs, server.Promlake), f.of)
		if !f.own {
			c.Peer, _ = median(of(runs, server.VictoriaMetrics), f.of)
		}
		out = append(out, c)
	}
	return out
}

// figuresOfCompaction are those of loads that are compacted. VictoriaMetrics merges while it is
// loaded, so its load is compared with Promlake's compaction, and with Promlake's lifecycle: load
// and compaction.
func figuresOfCompaction(cpu func(run) (float64, bool)) []compared {
	bytes := func(of func(run) int64, per func(run) int64) func(run) (float64, bool) {
		return func(r run) (float64, bool) {
			return float64(of(r)) / float64(per(r)), r.Kept != nil && per(r) > 0
		}
	}
	live := func(r run) int64 { return r.Kept.Bytes() - r.Kept.Rollups() }
	rollups := func(r run) int64 { return r.Kept.Rollups() }
	samples := func(r run) int64 { return r.Report.Samples }
	series := func(r run) int64 { return int64(r.Report.Series) }
	return []compared{
		{"compaction", "CPU-s", compactionOr(func(r run) float64 { return r.Report.Server.CPUSeconds }, func(r run) float64 { return r.Compacted.CPU.Seconds() }), false},
		{"compaction, peak memory", "MB", compactionOr(func(r run) float64 { return peakMB(*r.Report.Server) }, func(r run) float64 { return float64(r.Compacted.PeakRSS) / 1e6 }), false},
		{"load and compaction", cpuUnit, func(r run) (float64, bool) {
			v, known := cpu(r)
			if r.Compacted != nil {
				v += r.Compacted.CPU.Seconds() / float64(r.Report.Samples) * 1e6
			}
			return v, known
		}, false},
		{"live", "bytes per sample", bytes(live, samples), false},
		{"rollups on top", "bytes per sample", bytes(rollups, samples), true},
		{"live", "bytes per series", bytes(live, series), false},
		{"rollups on top", "bytes per series", bytes(rollups, series), true},
	}
}

// compactionOr is the figure of a run's compaction if it has one of its own, else that of its load.
func compactionOr(load, compaction func(run) float64) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		if r.Report.Server == nil {
			return 0, false
		}
		if r.Compacted == nil {
			return load(r), true
		}
		return compaction(r), true
	}
}

// of returns the runs of a server.
func of(runs []run, name string) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.Server != name })
}
