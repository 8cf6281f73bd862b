package demo

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// pressures are the totals of resources with the names and help texts of node_exporter. stalled is
// "" where no total is reported.
var pressures = []struct{ resource, waiting, stalled string }{
	{"cpu", "Total time in seconds that processes have waited for CPU time.", ""},
	{"io", "Total time in seconds that processes have waited due to IO congestion.", "Total time in seconds no process could make progress due to IO congestion."},
	{"memory", "Total time in seconds that processes have waited for memory.", "Total time in seconds no process could make progress due to memory congestion."},
}

// collectPressure reports /proc/pressure (Linux 4.20), whose totals are in microseconds.
func collectPressure(fs procfs.FS, e emit) error {
	for _, r := range pressures {
		s, err := fs.PSIStatsForResource(r.resource)
		if err != nil {
			return fmt.Errorf("read pressure of %s: %w", r.resource, err)
		}
		total := func(name, help string, line *procfs.PSILine) {
			if line != nil && help != "" {
				e(desc("node_pressure_"+r.resource+"_"+name+"_seconds_total", help), prometheus.CounterValue, float64(line.Total)/1e6)
			}
		}
		total("waiting", r.waiting, s.Some)
		total("stalled", r.stalled, s.Full)
	}
	return nil
}
