package node

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

var (
	pressureCPU           = desc("node_pressure_cpu_waiting_seconds_total", "Total time in seconds that processes have waited for CPU time.")
	pressureIO            = desc("node_pressure_io_waiting_seconds_total", "Total time in seconds that processes have waited due to IO congestion.")
	pressureIOStalled     = desc("node_pressure_io_stalled_seconds_total", "Total time in seconds no process could make progress due to IO congestion.")
	pressureMemory        = desc("node_pressure_memory_waiting_seconds_total", "Total time in seconds that processes have waited for memory.")
	pressureMemoryStalled = desc("node_pressure_memory_stalled_seconds_total", "Total time in seconds no process could make progress due to memory congestion.")
)

// collectPressure reports /proc/pressure (Linux 4.20), whose totals are in microseconds.
func collectPressure(fs procfs.FS, e emit) error {
	for _, r := range []struct {
		resource         string
		waiting, stalled *prometheus.Desc
	}{
		{"cpu", pressureCPU, nil},
		{"io", pressureIO, pressureIOStalled},
		{"memory", pressureMemory, pressureMemoryStalled},
	} {
		s, err := fs.PSIStatsForResource(r.resource)
		if err != nil {
			return fmt.Errorf("read pressure of %s: %w", r.resource, err)
		}
		if s.Some != nil {
			e(r.waiting, prometheus.CounterValue, float64(s.Some.Total)/1e6)
		}
		if s.Full != nil && r.stalled != nil {
			e(r.stalled, prometheus.CounterValue, float64(s.Full.Total)/1e6)
		}
	}
	return nil
}
