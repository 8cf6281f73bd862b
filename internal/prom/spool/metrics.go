package spool

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of a spool.
type metrics struct {
	waiting prometheus.Gauge
	stored  prometheus.Counter
	spilled prometheus.Counter
	dropped prometheus.Counter
	refused prometheus.Counter
	failed  prometheus.Counter
	full    prometheus.Counter
	damaged prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, d *disk) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "promlake", Subsystem: "queue", Name: name, Help: help})
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "promlake", Subsystem: "queue", Name: "disk_bytes",
		Help: "Bytes of the queue on disk."}, func() float64 { return float64(d.size()) })
	return &metrics{
		waiting: f.NewGauge(prometheus.GaugeOpts{Namespace: "promlake", Subsystem: "queue", Name: "waiting_transactions",
			Help: "Scrapes and results of rules that wait in memory for the store."}),
		stored:  counter("stored_samples_total", "Scraped samples and results of rules that were stored."),
		spilled: counter("spilled_samples_total", "Samples that were written to the queue on disk because the store was away."),
		dropped: counter("dropped_samples_total", "Samples that were lost because neither the store nor the queue on disk took them, or because they were refused as a whole."),
		refused: counter("refused_appends_total", "Appends of which samples were refused because they break a rule or a limit."),
		failed:  counter("failed_appends_total", "Appends that failed and are repeated."),
		full:    counter("full_waits_total", "Scrapes and results of rules that waited for room in memory, because --scrape.queue-memory was full."),
		damaged: counter("damaged_files_total", "Files of the queue that were damaged."),
	}
}
