package demo

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// emit passes one value to the registry. Labels are names, each before its value; all values of a
// metric have the same ones.
type emit func(name, help string, kind prometheus.ValueType, v float64, labels ...string)

func (e emit) counter(name, help string, v float64, labels ...string) {
	e(name, help, prometheus.CounterValue, v, labels...)
}

func (e emit) gauge(name, help string, v float64, labels ...string) {
	e(name, help, prometheus.GaugeValue, v, labels...)
}

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
			e.gauge("node_time_seconds", "System time in seconds since epoch (1970).", float64(now().UnixMilli())/1000)
			return nil
		}},
		{"uname", collectUname},
	}}, nil
}

// Describe sends nothing, because the metrics depend on the machine.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	var send emit = func(name, help string, kind prometheus.ValueType, v float64, labels ...string) {
		var names, values []string
		for pair := range slices.Chunk(labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		d := prometheus.NewDesc(name, help, names, nil)
		m, err := prometheus.NewConstMetric(d, kind, v, values...)
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
		send.gauge("node_scrape_collector_success", "Whether a collector succeeded.", ok, "collector", p.name)
	}
}

// errUnsupported is the error of parts that this operating system does not have.
var errUnsupported = errors.New("not supported on this operating system")
