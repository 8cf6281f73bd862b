package query

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/query/read"
)

// metrics tell an operator where query time and store requests go.
type metrics struct {
	seconds   *prometheus.HistogramVec // by operation
	errors    *prometheus.CounterVec   // by operation
	segments  prometheus.Counter
	blocks    prometheus.Counter
	groups    *prometheus.CounterVec // by outcome: considered, read
	bytes     *prometheus.CounterVec
	replans   prometheus.Counter
	rows      prometheus.Counter
	samples   prometheus.Counter
	fetched   prometheus.Counter
	cacheHits *prometheus.CounterVec // by cache
	cacheMiss *prometheus.CounterVec
	cacheSize prometheus.Gauge
	skipped   prometheus.Counter
	waiting   prometheus.Gauge
	pushed    *prometheus.CounterVec // by what: subtrees, statements, series
	kept      prometheus.Counter
	limited   *prometheus.CounterVec // by flag
	rereads   prometheus.Counter
	damaged   prometheus.Counter
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
			Name: "promlake_query_storage_seconds", Help: "Time to read from storage, by operation (select, push, label_names, label_values, exemplars, count).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"operation"}),
		errors:    vec("operation", "storage_errors_total", "Failed reads from storage, by operation."),
		segments:  counter("segments_read_total", "Segments whose series were looked at."),
		blocks:    counter("blocks_read_total", "Blocks whose series tables were looked at."),
		groups:    vec("outcome", "row_groups_total", "Row groups of the sample, histogram and exemplar files of blocks that overlap the asked time: considered, and read."),
		bytes:     vec("outcome", "object_bytes_total", "Bytes of segments and of the files of blocks that overlap the asked time: considered, and read."),
		replans:   counter("replans_total", "Reads that began again because an object was compacted away and deleted meanwhile."),
		rows:      counter("rows_scanned_total", "Rows (series) of the segments and series tables that were looked at."),
		samples:   counter("samples_read_total", "Samples handed to the engine or to remote read."),
		fetched:   counter("bytes_fetched_total", "Bytes of objects read from the object store into the cache directory."),
		cacheHits: vec("cache", "cache_hits_total", "Lookups answered by a cache (footer, index, samples, rollup, segment, chunks, snapshot)."),
		cacheMiss: vec("cache", "cache_misses_total", "Lookups that a cache (footer, index, samples, rollup, segment, chunks, snapshot) could not answer."),
		cacheSize: f.NewGauge(prometheus.GaugeOpts{Name: "promlake_query_cache_bytes", Help: "Bytes of fetched objects on disk."}),
		waiting:   f.NewGauge(prometheus.GaugeOpts{Name: "promlake_query_waiting", Help: "PromQL queries that wait for others to end."}),
		pushed:    vec("what", "pushed_total", "What was evaluated below the engine of PromQL queries: subtrees of their expressions, leaves and rollups that were read for them, SQL statements, and series of their results."),
		kept:      counter("kept_queries_total", "PromQL queries that the engine has evaluated alone, from samples."),
		limited:   vec("flag", "limited_total", "PromQL queries that went beyond a limit, by the flag that raises it."),
		rereads:   counter("rereads_total", "Objects that were read once more from the store because their bytes did not match their checksums or their format."),
		damaged:   counter("damaged_objects_total", "Reads that met a damaged object, and failed or, with --query.partial-response, went on without it."),
		skipped:   counter("unknown_objects_total", "Objects among the segments whose key is not a segment's, seen by listings."),
	}
}

// add counts what a read took.
func (m *metrics) add(t read.Totals) {
	m.segments.Add(float64(t.Segments))
	m.blocks.Add(float64(t.Blocks))
	for _, v := range []struct {
		vec *prometheus.CounterVec
		s   read.Share
	}{{m.groups, t.RowGroups}, {m.bytes, t.Bytes}} {
		v.vec.WithLabelValues("considered").Add(float64(v.s.Considered))
		v.vec.WithLabelValues("read").Add(float64(v.s.Read))
	}
}

// limit counts a query that err has ended, if that is a limit's.
func (m *metrics) limit(err error) {
	var limit *LimitError
	var process *memory.Error
	switch {
	case errors.As(err, &limit):
		m.limited.WithLabelValues(limit.Flag).Inc()
	case errors.As(err, &process):
		m.limited.WithLabelValues(memory.Flag).Inc()
	}
}

// Looked implements fetch.Meter.
func (m *metrics) Looked(kind string, hit bool) {
	if hit {
		m.cacheHits.WithLabelValues(kind).Inc()
		return
	}
	m.cacheMiss.WithLabelValues(kind).Inc()
}

// Fetched implements fetch.Meter.
func (m *metrics) Fetched(bytes int64) { m.fetched.Add(float64(bytes)) }

// Holds implements fetch.Meter.
func (m *metrics) Holds(bytes int64) { m.cacheSize.Set(float64(bytes)) }
