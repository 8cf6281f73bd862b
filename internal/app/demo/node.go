package demo

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// emit passes one value to the registry. All values of a name have the same number of labels.
type emit func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string)

// part collects the metrics of one file of proc.
type part struct {
	name    string
	collect func(emit) error
}

// Collector implements prometheus.Collector. A part that cannot be read is omitted, reported by
// node_scrape_collector_success 0, and logged at level debug.
type Collector struct {
	parts  []part
	logger *slog.Logger
}

// NewCollector returns a collector for the machine whose proc filesystem is mounted at procPath.
func NewCollector(procPath string, logger *slog.Logger, now func() time.Time) (*Collector, error) {
	fs, err := procfs.NewFS(procPath)
	if err != nil {
		return nil, fmt.Errorf("open proc: %w", err)
	}
	disks, err := blockdevice.NewFS(procPath, procPath)
	if err != nil {
		return nil, fmt.Errorf("open proc: %w", err)
	}
	return &Collector{logger: logger, parts: []part{
		{"cpu", func(e emit) error { return collectCPU(fs, e) }},
		{"diskstats", func(e emit) error { return collectDisks(disks, e) }},
		{"filesystem", func(e emit) error { return collectFilesystems(fs, statFilesystem, e) }},
		{"loadavg", func(e emit) error { return collectLoad(fs, e) }},
		{"meminfo", func(e emit) error { return collectMemory(procPath, e) }},
		{"netdev", func(e emit) error { return collectNetwork(fs, e) }},
		{"pressure", func(e emit) error { return collectPressure(fs, e) }},
		{"time", func(e emit) error {
			e(nodeTime, prometheus.GaugeValue, float64(now().UnixMilli())/1000)
			return nil
		}},
		{"uname", collectUname},
	}}, nil
}

// Describe sends nothing, because the metrics depend on the machine.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

var success = desc("node_scrape_collector_success", "Whether a collector succeeded.", "collector")

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, kind, v, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		out <- m
	}
	for _, p := range c.parts {
		ok := 1.0
		if err := p.collect(send); err != nil {
			ok = 0
			c.logger.Debug("part of the machine's metrics is missing", "collector", p.name, "err", err)
		}
		send(success, prometheus.GaugeValue, ok, p.name)
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// errUnsupported is the error of parts that this operating system does not have.
var errUnsupported = errors.New("not supported on this operating system")
