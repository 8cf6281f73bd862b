package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// measured are metrics of upstream's engine. Queries that need no query of upstream's count in them
// as well.
type measured struct {
	samples, read prometheus.Counter
	slices        []slice
}

// slice is the time of one part of queries.
type slice struct {
	timing stats.QueryTiming
	seen   []prometheus.Observer
}

// measuredBy returns the metrics that upstream's engine has registered with reg, which may be nil.
func measuredBy(reg prometheus.Registerer) *measured {
	const prefix = "prometheus_engine_query_"
	counter := func(name, help string) prometheus.Counter {
		return telemetry.Registered(reg, prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help}))
	}
	m := &measured{
		samples: counter("samples_total", "The total number of samples loaded by all queries (full window per step for range-vector)."),
		read:    counter("samples_read_total", "The total number of samples read by all queries (only new points per step for range-vector)."),
	}
	label := []string{"slice"}
	summary := telemetry.Registered(reg, prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Name: prefix + "duration_seconds", Help: "Query timings",
	}, label))
	histogram := telemetry.Registered(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "duration_histogram_seconds", Help: "The duration of various parts of PromQL query execution.",
	}, label))
	for _, s := range []struct {
		timing stats.QueryTiming
		name   string
	}{
		{stats.ExecQueueTime, "queue_time"}, {stats.QueryPreparationTime, "prepare_time"},
		{stats.InnerEvalTime, "inner_eval"}, {stats.ResultSortTime, "result_sort"},
	} {
		m.slices = append(m.slices, slice{s.timing, []prometheus.Observer{summary.WithLabelValues(s.name), histogram.WithLabelValues(s.name)}})
	}
	return m
}

// query counts a query. Only the results of range queries are sorted.
func (m *measured) query(s *stats.Statistics, ranged bool) {
	m.samples.Add(float64(s.Samples.TotalSamples))
	m.read.Add(float64(s.Samples.SamplesRead))
	for _, x := range m.slices {
		if x.timing == stats.ResultSortTime && !ranged {
			continue
		}
		seconds := s.Timers.GetTimer(x.timing).Duration()
		for _, o := range x.seen {
			o.Observe(seconds)
		}
	}
}
