package demo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

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
