package compact

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
)

// metrics are the metrics of the stage. Gauges are sums over all tenants, as the last cycle found
// them.
type metrics struct {
	jobs           *prometheus.CounterVec // by kind, level, outcome
	jobSeconds     *prometheus.HistogramVec
	samplesRead    prometheus.Counter
	samplesWritten prometheus.Counter
	samplesDeleted prometheus.Counter
	segmentsMerged *prometheus.CounterVec // by from
	bytesRead      prometheus.Counter
	bytesWritten   prometheus.Counter
	cycles         *prometheus.CounterVec // by result

	lag          prometheus.Gauge
	queue        prometheus.Gauge
	tenants      prometheus.Gauge
	segments     prometheus.Gauge
	segmentBytes prometheus.Gauge
	blocks       *prometheus.GaugeVec // by level
	blockBytes   *prometheus.GaugeVec // by level
	tombstones   prometheus.Gauge
	garbage      *prometheus.GaugeVec // by kind

	deletedObjects *prometheus.CounterVec // by kind
	deletedBytes   *prometheus.CounterVec // by kind
}

// newMetrics registers the metrics with reg, which may be nil. It panics if reg has them already.
func newMetrics(reg prometheus.Registerer) *metrics {
	const ns, sub = "promlake", "compact"
	f := promauto.With(reg)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, labels)
	}
	return &metrics{
		jobs: counters("jobs_total", "Jobs by kind, level and outcome (done, conflict, failed).", "kind", "level", "outcome"),
		jobSeconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Subsystem: sub, Name: "job_duration_seconds", Help: "Duration of the finished jobs, by level.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 12),
		}, []string{"level"}),
		samplesRead:    counter("samples_read_total", "Samples read from the sources of merges."),
		samplesWritten: counter("samples_written_total", "Samples written to blocks that were committed."),
		samplesDeleted: counter("samples_deleted_total", "Samples that merges left out because of a deletion."),
		segmentsMerged: counters("merged_segments_total", "Segments that merges took, by from: store (read), or memory (this process wrote them lately).", "from"),
		bytesRead:      counter("bytes_read_total", "Bytes of the sources of merges."),
		bytesWritten:   counter("bytes_written_total", "Bytes of the blocks that were written."),
		cycles:         counters("cycles_total", "Cycles over all tenants by result.", "result"),
		lag:            gauge("lag_seconds", "How long ago the oldest window was due that is not yet a block."),
		queue:          gauge("queue_jobs", "Jobs that the last plans had and that are not done."),
		tenants:        gauge("tenants", "Tenants that have objects."),
		segments:       gauge("live_segments", "Segments that no block stands for yet."),
		segmentBytes:   gauge("live_segment_bytes", "Bytes of the segments that no block stands for yet."),
		blocks:         gauges("live_blocks", "Live blocks by level.", "level"),
		blockBytes:     gauges("live_block_bytes", "Bytes of the live blocks by level.", "level"),
		tombstones:     gauge("tombstones", "Deletions that are not yet applied to all blocks."),
		garbage:        gauges("garbage_objects", "Superseded segments and blocks that are not yet deleted.", "kind"),
		deletedObjects: counters("garbage_deleted_objects_total", "Objects deleted by kind (segment, block, manifest).", "kind"),
		deletedBytes:   counters("garbage_deleted_bytes_total", "Bytes of the objects deleted by kind.", "kind"),
	}
}

// ran counts a job.
func (m *metrics) ran(r *Result) {
	level := r.Job.Level.String()
	if r.Job.Kind == plan.Expire || r.Job.Kind == plan.Drop {
		level = ""
	}
	m.jobs.WithLabelValues(r.Job.Kind.String(), level, string(r.Outcome)).Inc()
	m.samplesRead.Add(float64(r.Read))
	m.bytesRead.Add(float64(r.BytesRead))
	m.bytesWritten.Add(float64(r.BytesWritten))
	if r.Outcome != Done {
		return
	}
	m.samplesWritten.Add(float64(r.Written))
	m.samplesDeleted.Add(float64(r.Deleted))
	m.jobSeconds.WithLabelValues(level).Observe(r.Took.Seconds())
}

// cycled counts a cycle or tick.
func (m *metrics) cycled(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.cycles.WithLabelValues(result).Inc()
}

// saw sets the gauges to what a cycle found.
func (m *metrics) saw(state *plan.State) {
	m.lag.Set(state.Lag.Seconds())
	m.tenants.Set(float64(state.Tenants))
	m.segments.Set(float64(state.Segments))
	m.segmentBytes.Set(float64(state.SegmentBytes))
	m.tombstones.Set(float64(state.Tombstones))
	m.garbage.WithLabelValues("segment").Set(float64(state.GarbageSegments))
	m.garbage.WithLabelValues("block").Set(float64(state.GarbageBlocks))
	for _, l := range key.Levels {
		m.blocks.WithLabelValues(l.String()).Set(float64(state.Blocks[l]))
		m.blockBytes.WithLabelValues(l.String()).Set(float64(state.BlockBytes[l]))
	}
}

func (m *metrics) collected(g *Garbage) {
	for kind, n := range map[string]Count{"segment": g.Segments, "block": g.Blocks, "manifest": g.Manifests} {
		m.deletedObjects.WithLabelValues(kind).Add(float64(n.Objects))
		m.deletedBytes.WithLabelValues(kind).Add(float64(n.Bytes))
	}
}
