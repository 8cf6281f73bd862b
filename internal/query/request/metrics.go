package request

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/base/memory"
)

// Metrics show an operator where query time and store requests are spent. They are safe for
// concurrent use.
type Metrics struct {
	now       func() time.Time
	seconds   *prometheus.HistogramVec // by operation
	errors    *prometheus.CounterVec   // by operation
	segments  prometheus.Counter
	blocks    prometheus.Counter
	groups    reads
	bytes     reads
	Replans   prometheus.Counter
	Rows      prometheus.Counter
	Samples   prometheus.Counter
	fetched   prometheus.Counter
	lookups   map[string]outcomes // by cache
	cacheSize prometheus.Gauge
	Skipped   prometheus.Counter
	Waiting   prometheus.Gauge
	Pushed    Pushed
	Subtrees  map[string]prometheus.Counter // that were evaluated below the engine, by driver
	Kept      prometheus.Counter
	Heads     prometheus.Counter
	limits    *prometheus.CounterVec // by flag
	Rereads   prometheus.Counter
	Damaged   prometheus.Counter
}

// reads count what reads considered, and what of it they read.
type reads struct{ considered, read prometheus.Counter }

func readsOf(v *prometheus.CounterVec) reads {
	return reads{v.WithLabelValues("considered"), v.WithLabelValues("read")}
}

func (r reads) add(considered, read int64) {
	r.considered.Add(float64(considered))
	r.read.Add(float64(read))
}

// Pushed count what is evaluated below the engine.
type Pushed struct{ Leaves, Rollups, Series prometheus.Counter }

// caches are the names of the caches.
var caches = []string{"chunks", "footer", "index", "rollup", "samples", "segment", "selection", "snapshot"}

// outcomes count the look-ups of a cache. A query looks up hundreds of objects. These and the other
// counters that each query increases are found once.
type outcomes struct{ hits, misses prometheus.Counter }

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer, now func() time.Time) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "promlake_query_" + name, Help: help})
	}
	vec := func(label, name, help string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "promlake_query_" + name, Help: help}, []string{label})
	}
	subtrees := vec("driver", "subtrees_total", "Subtrees of PromQL expressions that were evaluated below the engine, by what called their operators: direct, or duckdb by a SQL statement.")
	hits := vec("cache", "cache_hits_total", "Lookups answered by a cache (footer, index, selection, samples, rollup, segment, chunks, snapshot).")
	misses := vec("cache", "cache_misses_total", "Lookups that a cache (footer, index, selection, samples, rollup, segment, chunks, snapshot) could not answer.")
	lookups := map[string]outcomes{}
	for _, kind := range caches {
		lookups[kind] = outcomes{hits.WithLabelValues(kind), misses.WithLabelValues(kind)}
	}
	v := vec("what", "pushed_total", "What was evaluated below the engine of PromQL queries: leaves and rollups that were read for subtrees of their expressions, and series of their results.")
	return &Metrics{
		now: now,
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "promlake_query_storage_seconds", Help: "Time to read from storage, by operation (select, push, label_names, label_values, exemplars, count).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"operation"}),
		errors:    vec("operation", "storage_errors_total", "Failed reads from storage, by operation."),
		segments:  counter("segments_read_total", "Segments whose series were looked at."),
		blocks:    counter("blocks_read_total", "Blocks whose series tables were looked at."),
		groups:    readsOf(vec("outcome", "row_groups_total", "Row groups of the sample, histogram and exemplar files of blocks that overlap the asked time: considered, and read.")),
		bytes:     readsOf(vec("outcome", "object_bytes_total", "Bytes of segments and of the files of blocks that overlap the asked time: considered, and read.")),
		Replans:   counter("replans_total", "Reads that began again because an object was compacted away and deleted meanwhile."),
		Rows:      counter("rows_scanned_total", "Rows (series) of the segments and series tables that were looked at."),
		Samples:   counter("samples_read_total", "Samples handed to the engine or to remote read."),
		fetched:   counter("bytes_fetched_total", "Bytes of objects read from the object store into the cache directory."),
		lookups:   lookups,
		cacheSize: f.NewGauge(prometheus.GaugeOpts{Name: "promlake_query_cache_bytes", Help: "Bytes of fetched objects on disk."}),
		Waiting:   f.NewGauge(prometheus.GaugeOpts{Name: "promlake_query_waiting", Help: "PromQL queries that wait for others to end."}),
		Subtrees:  map[string]prometheus.Counter{"direct": subtrees.WithLabelValues("direct"), "duckdb": subtrees.WithLabelValues("duckdb")},
		Pushed:    Pushed{v.WithLabelValues("leaves"), v.WithLabelValues("rollups"), v.WithLabelValues("series")},
		Heads:     counter("head_queries_total", "PromQL queries whose samples, or the last of them, came from the head: the last minutes of samples in memory, by series."),
		Kept:      counter("kept_queries_total", "PromQL queries that the engine has evaluated alone, from samples."),
		limits:    vec("flag", "limited_total", "PromQL queries that went beyond a limit, by the flag that raises it."),
		Rereads:   counter("rereads_total", "Objects that were read once more from the store because their bytes did not match their checksums or their format."),
		Damaged:   counter("damaged_objects_total", "Reads that met a damaged object, and failed or, with --query.partial-response, went on without it."),
		Skipped:   counter("unknown_objects_total", "Objects among the segments whose key is not a segment's, seen by listings."),
	}
}

// Count adds what a read takes to the metrics and to ctx's request.
func (m *Metrics) Count(ctx context.Context, t Totals) {
	m.segments.Add(float64(t.Segments))
	m.blocks.Add(float64(t.Blocks))
	m.groups.add(int64(t.RowGroups.Considered), int64(t.RowGroups.Read))
	m.bytes.add(t.Bytes.Considered, t.Bytes.Read)
	From(ctx).Count(t)
}

// Measure runs an operation and observes its time and its failure under its name, which the error
// then begins with.
func (m *Metrics) Measure(operation string, fn func() error) error {
	start := m.now()
	err := fn()
	m.seconds.WithLabelValues(operation).Observe(m.now().Sub(start).Seconds())
	if err != nil {
		m.errors.WithLabelValues(operation).Inc()
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

// Limited counts a query that ended with err, if err is that of a limit.
func (m *Metrics) Limited(err error) {
	var exceeded *LimitError
	var process *memory.Error
	switch {
	case errors.As(err, &exceeded):
		m.limits.WithLabelValues(exceeded.Flag).Inc()
	case errors.As(err, &process):
		m.limits.WithLabelValues(memory.Flag).Inc()
	}
}

// CountLookup implements fetch.Meter.
func (m *Metrics) CountLookup(kind string, hit bool) {
	if hit {
		m.CountLookups(kind, 1, 0)
		return
	}
	m.CountLookups(kind, 0, 1)
}

// CountLookups counts the look-ups of one of the caches.
func (m *Metrics) CountLookups(kind string, hits, misses int) {
	of := m.lookups[kind]
	of.hits.Add(float64(hits))
	of.misses.Add(float64(misses))
}

// Fetched implements fetch.Meter.
func (m *Metrics) Fetched(ctx context.Context, bytes int64) {
	m.fetched.Add(float64(bytes))
	if t := From(ctx).Took; t != nil {
		t.Requests.Add(1)
	}
}

// Holds implements fetch.Meter.
func (m *Metrics) Holds(bytes int64) { m.cacheSize.Set(float64(bytes)) }
