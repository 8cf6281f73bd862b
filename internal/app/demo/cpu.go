package demo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

var (
	cpuSeconds      = desc("node_cpu_seconds_total", "Seconds the CPUs spent in each mode.", "cpu", "mode")
	cpuGuestSeconds = desc("node_cpu_guest_seconds_total", "Seconds the CPUs spent in guests (VMs) for each mode.", "cpu", "mode")
	bootTime        = desc("node_boot_time_seconds", "Node boot time, in unixtime.")
	contextSwitches = desc("node_context_switches_total", "Total number of context switches.")
	forks           = desc("node_forks_total", "Total number of forks.")
	interrupts      = desc("node_intr_total", "Total number of interrupts serviced.")
	procsRunning    = desc("node_procs_running", "Number of processes in runnable state.")
	procsBlocked    = desc("node_procs_blocked", "Number of processes blocked waiting for I/O to complete.")
	load1           = desc("node_load1", "1m load average.")
	load5           = desc("node_load5", "5m load average.")
	load15          = desc("node_load15", "15m load average.")
	nodeTime        = desc("node_time_seconds", "System time in seconds since epoch (1970).")
)

func collectCPU(fs procfs.FS, e emit) error {
	s, err := fs.Stat()
	if err != nil {
		return fmt.Errorf("read cpu times: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(s.CPU)) {
		emitCPU(strconv.FormatInt(id, 10), s.CPU[id], e)
	}
	e(bootTime, prometheus.GaugeValue, float64(s.BootTime))
	e(contextSwitches, prometheus.CounterValue, float64(s.ContextSwitches))
	e(forks, prometheus.CounterValue, float64(s.ProcessCreated))
	e(interrupts, prometheus.CounterValue, float64(s.IRQTotal))
	e(procsRunning, prometheus.GaugeValue, float64(s.ProcessesRunning))
	e(procsBlocked, prometheus.GaugeValue, float64(s.ProcessesBlocked))
	return nil
}

func emitCPU(cpu string, s procfs.CPUStat, e emit) {
	for _, m := range []struct {
		mode string
		v    float64
	}{
		{"idle", s.Idle}, {"iowait", s.Iowait}, {"irq", s.IRQ}, {"nice", s.Nice},
		{"softirq", s.SoftIRQ}, {"steal", s.Steal}, {"system", s.System}, {"user", s.User},
	} {
		e(cpuSeconds, prometheus.CounterValue, m.v, cpu, m.mode)
	}
	e(cpuGuestSeconds, prometheus.CounterValue, s.GuestNice, cpu, "nice")
	e(cpuGuestSeconds, prometheus.CounterValue, s.Guest, cpu, "user")
}

func collectLoad(fs procfs.FS, e emit) error {
	l, err := fs.LoadAvg()
	if err != nil {
		return fmt.Errorf("read load average: %w", err)
	}
	e(load1, prometheus.GaugeValue, l.Load1)
	e(load5, prometheus.GaugeValue, l.Load5)
	e(load15, prometheus.GaugeValue, l.Load15)
	return nil
}

// collectMemory reports all fields of meminfo with node_exporter's names; those in bytes end with
// _bytes.
func collectMemory(procPath string, e emit) error {
	text, err := os.ReadFile(filepath.Join(procPath, "meminfo"))
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":") // such as Active(anon): 4000000 kB
		amount, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(amount, 64)
		if err != nil {
			return fmt.Errorf("read memory: field %s: %w", name, err)
		}
		name = strings.NewReplacer("(", "_", ")", "").Replace(name)
		if unit == "kB" {
			name, v = name+"_bytes", v*1024
		}
		e(desc("node_memory_"+name, "Memory information field "+name+"."), prometheus.GaugeValue, v)
	}
	return nil
}

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
