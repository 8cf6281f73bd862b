package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Metrics makes metrics whose names begin with a prefix, as Registered registers them.
type Metrics struct {
	Registerer prometheus.Registerer
	Prefix     string // such as promlake_ingest_
}

// Counter makes a counter without labels.
func (m Metrics) Counter(name, help string) prometheus.Counter {
	return Registered(m.Registerer, prometheus.NewCounter(prometheus.CounterOpts{Name: m.Prefix + name, Help: help}))
}

// Counters makes a counter with labels.
func (m Metrics) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return Registered(m.Registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Prefix + name, Help: help}, labels))
}

// CountersOf makes a counter with a label whose values exist from the start, so that rates see the
// first count of each.
func (m Metrics) CountersOf(name, help, label string, values ...string) *prometheus.CounterVec {
	c := m.Counters(name, help, label)
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}

// Gauge makes a gauge without labels.
func (m Metrics) Gauge(name, help string) prometheus.Gauge {
	return Registered(m.Registerer, prometheus.NewGauge(prometheus.GaugeOpts{Name: m.Prefix + name, Help: help}))
}

// Gauges makes a gauge with labels.
func (m Metrics) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return Registered(m.Registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Prefix + name, Help: help}, labels))
}

// Histogram makes a histogram without labels. Buckets are the upper bounds of its buckets.
func (m Metrics) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return Registered(m.Registerer, prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Prefix + name, Help: help, Buckets: buckets}))
}

// Histograms makes a histogram with labels.
func (m Metrics) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return Registered(m.Registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Prefix + name, Help: help, Buckets: buckets}, labels))
}
