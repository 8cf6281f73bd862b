package query

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics tell an operator where query time and store requests go.
type metrics struct {
	seconds   *prometheus.HistogramVec // by operation
	errors    *prometheus.CounterVec   // by operation
	segments  prometheus.Counter
	rows      prometheus.Counter
	samples   prometheus.Counter
	fetched   prometheus.Counter
	cacheHits *prometheus.CounterVec // by cache
	cacheMiss *prometheus.CounterVec
	cacheSize prometheus.Gauge
	skipped   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "promlake_query_" + name, Help: help})
	}
	vec := func(label, name, help string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "promlake_query_" + name, Help: help}, []string{label})
	}
	return &metrics{
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "promlake_query_storage_seconds", Help: "Time to read from storage, by operation (select, label_names, label_values, exemplars).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"operation"}),
		errors:    vec("operation", "storage_errors_total", "Failed reads from storage, by operation."),
		segments:  counter("segments_read_total", "Segments that SQL statements read."),
		rows:      counter("rows_scanned_total", "Segment rows (series) in the files that SQL statements read."),
		samples:   counter("samples_read_total", "Samples handed to the engine or to remote read."),
		fetched:   counter("bytes_fetched_total", "Bytes of segments read from the object store into the cache directory."),
		cacheHits: vec("cache", "cache_hits_total", "Lookups answered by a cache (footer, segment)."),
		cacheMiss: vec("cache", "cache_misses_total", "Lookups that a cache (footer, segment) could not answer."),
		cacheSize: f.NewGauge(prometheus.GaugeOpts{Name: "promlake_query_cache_bytes", Help: "Bytes of fetched segments on disk."}),
		skipped:   counter("unknown_objects_total", "Objects among the segments whose key is not a segment's, seen by listings."),
	}
}
