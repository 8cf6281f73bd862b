package ingest

import (
	"slices"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// comparisons are the figures of the servers under a load with a name: those of the first run of
// each.
func comparisons(name string, runs []run) []table.Comparison {
	return disk.Compare(name, life(runs, server.Promlake), life(runs, server.VictoriaMetrics))
}

// life returns what the samples of a server's first run cost it, nil if it did not run.
func life(runs []run, name string) *disk.Life {
	i := slices.IndexFunc(runs, func(r run) bool { return r.Server == name })
	if i < 0 {
		return nil
	}
	r := runs[i]
	return &disk.Life{
		Samples: r.Report.Samples, Series: int64(r.Report.Series), Load: r.Report.Server.CPUSeconds, LoadRSS: r.Report.Server.PeakRSSBytes,
		Kept: r.Kept, Compaction: r.Compacted,
	}
}
