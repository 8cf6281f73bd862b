package demo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

func collectCPU(fs procfs.FS, e emit) error {
	s, err := fs.Stat()
	if err != nil {
		return fmt.Errorf("read cpu times: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(s.CPU)) {
		cpu, c := strconv.FormatInt(id, 10), s.CPU[id]
		for _, m := range []struct {
			mode string
			v    float64
		}{
			{"idle", c.Idle}, {"iowait", c.Iowait}, {"irq", c.IRQ}, {"nice", c.Nice},
			{"softirq", c.SoftIRQ}, {"steal", c.Steal}, {"system", c.System}, {"user", c.User},
		} {
			e.counter("node_cpu_seconds_total", "Seconds the CPUs spent in each mode.", m.v, "cpu", cpu, "mode", m.mode)
		}
		const guests, help = "node_cpu_guest_seconds_total", "Seconds the CPUs spent in guests (VMs) for each mode."
		e.counter(guests, help, c.GuestNice, "cpu", cpu, "mode", "nice")
		e.counter(guests, help, c.Guest, "cpu", cpu, "mode", "user")
	}
	e.gauge("node_boot_time_seconds", "Node boot time, in unixtime.", float64(s.BootTime))
	e.counter("node_context_switches_total", "Total number of context switches.", float64(s.ContextSwitches))
	e.counter("node_forks_total", "Total number of forks.", float64(s.ProcessCreated))
	e.counter("node_intr_total", "Total number of interrupts serviced.", float64(s.IRQTotal))
	e.gauge("node_procs_running", "Number of processes in runnable state.", float64(s.ProcessesRunning))
	e.gauge("node_procs_blocked", "Number of processes blocked waiting for I/O to complete.", float64(s.ProcessesBlocked))
	return nil
}

func collectLoad(fs procfs.FS, e emit) error {
	l, err := fs.LoadAvg()
	if err != nil {
		return fmt.Errorf("read load average: %w", err)
	}
	e.gauge("node_load1", "1m load average.", l.Load1)
	e.gauge("node_load5", "5m load average.", l.Load5)
	e.gauge("node_load15", "15m load average.", l.Load15)
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
		e.gauge("node_memory_"+name, "Memory information field "+name+".", v)
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
				e.counter("node_pressure_"+r.resource+"_"+name+"_seconds_total", help, float64(line.Total)/1e6)
			}
		}
		total("waiting", r.waiting, s.Some)
		total("stalled", r.stalled, s.Full)
	}
	return nil
}
