package memory

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meters are the metrics of a Budget.
type meters struct {
	refused, ended prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, b *Budget) *meters {
	f := promauto.With(reg)
	gauge := func(name, help string, value func() int64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: "promlake_memory_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("limit_bytes", "Memory that the process may use (--memory-limit).", func() int64 { return b.limit })
	gauge("used_bytes", "Memory that the process uses.", b.probe.Usage)
	gauge("acquired_bytes", "Memory that requests have acquired and not yet released.", func() int64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.held
	})
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "promlake_memory_" + name, Help: help})
	}
	return &meters{
		refused: counter("refused_total", "Acquisitions of memory that were refused at the limit."),
		ended:   counter("ended_total", "Requests that were ended because the process was above its limit."),
	}
}
