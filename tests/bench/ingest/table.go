package ingest

import (
	"fmt"
	"io"
	"slices"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// measure is a row of the table.
type measure struct {
	name   string
	format string
	of     func(run) (value float64, known bool)
}

func always(f func(run) float64) func(run) (float64, bool) {
	return func(r run) (float64, bool) { return f(r), true }
}

func ofProcess(f func(load.Server) float64) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		if r.Report.Server == nil {
			return 0, false
		}
		return f(*r.Report.Server), true
	}
}

// measures are the rows of the table, in order.
func measures() []measure {
	return []measure{
		{"samples/s", "%.0f", always(func(r run) float64 { return r.Report.SamplesPerSecond })},
		{disk.CPUUnit, "%.3f", ofProcess(func(s load.Server) float64 { return s.CPUPerMillion })},
		{"latency p50, ms", "%.1f", always(func(r run) float64 { return r.Report.Latency.P50 })},
		{"latency p99, ms", "%.1f", always(func(r run) float64 { return r.Report.Latency.P99 })},
		{"peak RSS, MB", "%.1f", ofProcess(func(s load.Server) float64 { return float64(s.PeakRSSBytes) / 1e6 })},
		{"disk, MB", "%.1f", always(func(r run) float64 { return float64(r.DiskBytes) / 1e6 })},
		{"disk, bytes/sample", "%.2f", func(r run) (float64, bool) {
			if r.Report.Samples == 0 {
				return 0, false
			}
			return float64(r.DiskBytes) / float64(r.Report.Samples), true
		}},
		{"compaction: " + disk.CPUUnit, "%.3f", func(r run) (float64, bool) {
			if r.Compacted == nil {
				return 0, false
			}
			return r.Compacted.CPU.Seconds() / float64(r.Report.Samples) * 1e6, true
		}},
		{"compaction: peak RSS, MB", "%.1f", func(r run) (float64, bool) {
			if r.Compacted == nil {
				return 0, false
			}
			return float64(r.Compacted.PeakRSS) / 1e6, true
		}},
		{"compacted, bytes/sample", "%.4f", func(r run) (float64, bool) {
			return float64(r.Kept.Bytes()-r.Kept.Rollups()) / float64(r.Report.Samples), r.Compacted != nil
		}},
		{"rollups, bytes/sample", "%.4f", func(r run) (float64, bool) {
			return float64(r.Kept.Rollups()) / float64(r.Report.Samples), r.Compacted != nil
		}},
		{"samples, millions", "%.2f", always(func(r run) float64 { return float64(r.Report.Samples) / 1e6 })},
		{"requests failed", "%.0f", always(func(r run) float64 { return float64(r.Report.RequestsFailed) })},
		{"generator CPU-s per million", "%.3f", always(func(r run) float64 { return r.Report.GeneratorCPUPerMillion })},
	}
}

// writeTable prints one Markdown table: a row for each measure, a column for each server (the
// median of its complete runs), and a column for each ratio of Promlake to a peer.
func writeTable(w io.Writer, runs []run) error {
	complete := map[string][]run{}
	var names, peers []string
	for _, name := range []string{server.Promlake, server.VictoriaMetrics, server.Prometheus} {
		if !slices.ContainsFunc(runs, func(r run) bool { return r.Server == name }) {
			continue
		}
		names = append(names, name)
		if name != server.Promlake {
			peers = append(peers, name)
		}
		for _, r := range runs {
			if r.Server == name && r.Error == "" {
				complete[name] = append(complete[name], r)
			}
		}
	}
	if !slices.Contains(names, server.Promlake) {
		peers = nil // nothing to compare them with
	}
	rows := [][]string{header(names, peers)}
	for _, m := range measures() {
		if r, known := row(m, names, peers, complete); known {
			rows = append(rows, r)
		}
	}
	return table.Write(w, rows)
}

func header(names, peers []string) []string {
	cells := append([]string{"measure"}, names...)
	for _, p := range peers {
		cells = append(cells, server.Promlake+"/"+p)
	}
	return cells
}

// row is the row of a measure, and whether any server has it.
func row(m measure, names, peers []string, complete map[string][]run) (cells []string, any bool) {
	cells = []string{m.name}
	for _, n := range names {
		if v, known := median(complete[n], m.of); known {
			any = true
			cells = append(cells, fmt.Sprintf(m.format, v))
		} else {
			cells = append(cells, table.Unknown)
		}
	}
	own, ownKnown := median(complete[server.Promlake], m.of)
	for _, p := range peers {
		if v, known := median(complete[p], m.of); known && ownKnown && v != 0 {
			cells = append(cells, fmt.Sprintf("%.2f", own/v))
		} else {
			cells = append(cells, table.Unknown)
		}
	}
	return cells, any
}

// median returns the median of the known values, and whether there is any.
func median(runs []run, of func(run) (float64, bool)) (float64, bool) {
	var v []float64
	for _, r := range runs {
		if x, known := of(r); known {
			v = append(v, x)
		}
	}
	return table.Median(v)
}
