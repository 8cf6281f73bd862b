package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

func newMetrics(reg prometheus.Registerer, d *disk) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "promlake", Subsystem: "queue", Name: name, Help: help})
	}
	m := &metrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "promlake", Subsystem: "queue", Name: "waiting_transactions",
			Help: "Scrapes and results of rules that wait in memory for the store."}),
		stored:  counter("stored_samples_total", "Scraped samples and results of rules that were stored."),
		spilled: counter("spilled_samples_total", "Samples that were written to the queue on disk because the store was away."),
		dropped: counter("dropped_samples_total", "Samples that were lost because neither the store nor the queue on disk took them, or because they were refused as a whole."),
		refused: counter("refused_appends_total", "Appends of which samples were refused because they break a rule or a limit."),
		failed:  counter("failed_appends_total", "Appends that failed and are repeated."),
		full:    counter("full_waits_total", "Scrapes and results of rules that waited for room in memory, because --scrape.queue-memory was full."),
		damaged: counter("damaged_files_total", "Files of the queue that were damaged."),
	}
	bytes := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "promlake", Subsystem: "queue", Name: "disk_bytes",
		Help: "Bytes of the queue on disk."}, func() float64 { return float64(d.size()) })
	var errs []error
	for _, c := range []prometheus.Collector{m.waiting, m.stored, m.spilled, m.dropped, m.refused, m.failed, m.full, m.damaged, bytes} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics of the queue: %w", err)
	}
	return m, nil
}

// sleep waits for d. It reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
