package compact

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
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

// newMetrics registers the metrics with reg, which may be nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := telemetry.Metrics{Registerer: reg, Prefix: "promlake_compact_"}
	return &metrics{
		jobs:           m.Counters("jobs_total", "Jobs by kind, level and outcome (done, conflict, failed).", "kind", "level", "outcome"),
		jobSeconds:     m.Histograms("job_duration_seconds", "Duration of the finished jobs, by level.", prometheus.ExponentialBuckets(0.01, 3, 12), "level"),
		samplesRead:    m.Counter("samples_read_total", "Samples read from the sources of merges."),
		samplesWritten: m.Counter("samples_written_total", "Samples written to blocks that were committed."),
		samplesDeleted: m.Counter("samples_deleted_total", "Samples that merges left out because of a deletion."),
		segmentsMerged: m.Counters("merged_segments_total", "Segments that merges took, by from: store (read), or memory (this process wrote them lately).", "from"),
		bytesRead:      m.Counter("bytes_read_total", "Bytes of the sources of merges."),
		bytesWritten:   m.Counter("bytes_written_total", "Bytes of the blocks that were written."),
		cycles:         m.Counters("cycles_total", "Cycles over all tenants by result.", "result"),
		lag:            m.Gauge("lag_seconds", "How long ago the oldest window was due that is not yet a block."),
		queue:          m.Gauge("queue_jobs", "Jobs that the last plans had and that are not done."),
		tenants:        m.Gauge("tenants", "Tenants that have objects."),
		segments:       m.Gauge("live_segments", "Segments that no block stands for yet."),
		segmentBytes:   m.Gauge("live_segment_bytes", "Bytes of the segments that no block stands for yet."),
		blocks:         m.Gauges("live_blocks", "Live blocks by level.", "level"),
		blockBytes:     m.Gauges("live_block_bytes", "Bytes of the live blocks by level.", "level"),
		tombstones:     m.Gauge("tombstones", "Deletions that are not yet applied to all blocks."),
		garbage:        m.Gauges("garbage_objects", "Superseded segments and blocks that are not yet deleted.", "kind"),
		deletedObjects: m.Counters("garbage_deleted_objects_total", "Objects deleted by kind (segment, block, answer, manifest).", "kind"),
		deletedBytes:   m.Counters("garbage_deleted_bytes_total", "Bytes of the objects deleted by kind.", "kind"),
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
	for kind, n := range map[string]Count{"segment": g.Segments, "block": g.Blocks, "answer": g.Answers, "manifest": g.Manifests} {
		m.deletedObjects.WithLabelValues(kind).Add(float64(n.Objects))
		m.deletedBytes.WithLabelValues(kind).Add(float64(n.Bytes))
	}
}
