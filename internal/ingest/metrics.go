package ingest

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/remotewrite"
)

// metrics are what an operator asks of the stage.
type metrics struct {
	requests     *prometheus.CounterVec // by protocol, code
	samples      prometheus.Counter
	histograms   prometheus.Counter
	exemplars    prometheus.Counter
	discarded    *prometheus.CounterVec // by reason
	refused      *prometheus.CounterVec // by tenant, reason
	flushes      *prometheus.CounterVec // by result
	flushSeconds prometheus.Histogram
	flushSamples prometheus.Histogram
	segments     prometheus.Counter
	segmentBytes prometheus.Counter
	bodyBytes    *prometheus.CounterVec // by form
	tenants      prometheus.Gauge
	mode         *prometheus.GaugeVec // by mode
	queued       prometheus.Counter
	queuedBytes  prometheus.Counter
	queuedParts  prometheus.Counter
	messages     *prometheus.CounterVec // by result
	queueSeconds prometheus.Histogram

	inflightBytes prometheus.Gauge
	limited       *prometheus.CounterVec // by limit

	mu    sync.Mutex
	named map[string]bool // tenants that refused has by their names
}

// maxNamed is the number of tenants with counters of their own; othersLabel is for all others, and
// no name of a tenant.
const (
	maxNamed    = 100
	othersLabel = "<others>"
)

// tenantLabel is the label of a tenant's counters.
func (m *metrics) tenantLabel(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.named[id] && len(m.named) >= maxNamed {
		return othersLabel
	}
	m.named[id] = true
	return id
}

// newMetrics registers the metrics with reg.
func newMetrics(reg prometheus.Registerer, mode Mode) *metrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_ingest_"}
	m := &metrics{
		named:        map[string]bool{},
		refused:      f.Counters("tenant_discarded_samples_total", "Samples refused, dropped by relabeling, and strings left out, by tenant and reason; exemplars and metadata have reasons of their own. Tenants after the first 100 that were refused something are <others>.", "tenant", "reason"),
		requests:     f.Counters("requests_total", "Write requests by protocol (1 and 2: the versions of remote_write; influx: line protocol; text: Prometheus' text formats; otlp; json: lines of JSON; csv; opentsdb) and HTTP status code.", "protocol", "code"),
		samples:      f.Counter("samples_total", "Float samples made durable."),
		histograms:   f.Counter("histograms_total", "Native histogram samples made durable."),
		exemplars:    f.Counter("exemplars_total", "Exemplars made durable."),
		discarded:    f.Counters("discarded_samples_total", "Samples refused, dropped by relabeling, and strings of the line protocol left out, by reason; exemplars and metadata have reasons of their own.", "reason"),
		flushes:      f.Counters("flushes_total", "Flushes by result.", "result"),
		flushSeconds: f.Histogram("flush_duration_seconds", "Time from the start of a flush, of a group of requests or a batch of messages, until its segments are durable.", prometheus.ExponentialBuckets(0.001, 2, 14)),
		flushSamples: f.Histogram("flush_samples", "Samples of a flush.", prometheus.ExponentialBuckets(1, 4, 12)),
		segments:     f.Counter("segments_total", "Segments written."),
		segmentBytes: f.Counter("segment_bytes_total", "Bytes of the segments written."),
		bodyBytes:    f.Counters("body_bytes_total", "Bytes of request bodies: as sent (snappy, gzip, zstd, or their form if not compressed) and decompressed (protobuf, json, text).", "form"),
		tenants:      f.Gauge("tenants", "Tenants that wrote within about --ingest.tenant-idle."),
		mode:         f.Gauges("mode", "1 for the mode in which requests are handled.", "mode"),
		queued:       f.Counter("queued_samples_total", "Float and histogram samples put on the queue (mode buffered)."),
		queuedBytes:  f.Counter("queued_bytes_total", "Bytes of the messages put on the queue (mode buffered)."),
		queuedParts:  f.Counter("queued_messages_total", "Messages put on the queue (mode buffered)."),
		messages:     f.Counters("messages_total", "Messages taken from the queue: ok, failed (to be delivered again) or unreadable.", "result"),
		queueSeconds: f.Histogram("queue_delay_seconds", "Time from a request's arrival until its samples are in the store, by message (mode buffered).", prometheus.ExponentialBuckets(0.25, 2, 14)),
	}
	m.inflightBytes = f.Gauge("inflight_bytes", "Memory charged to requests that are being received, decoded or written.")
	m.limited = f.Counters("limited_requests_total", "Requests refused by a limit of the process, by the limit's flag.", "limit")
	m.mode.WithLabelValues(string(mode)).Set(1)
	return m
}

func (m *metrics) discard(tenant string, r remotewrite.Reason, samples int) {
	m.discarded.WithLabelValues(string(r)).Add(float64(samples))
	m.refused.WithLabelValues(m.tenantLabel(tenant), string(r)).Add(float64(samples))
}

// flushed counts a flush that was committed or failed.
func (m *metrics) flushed(n remotewrite.Tally, err error, took time.Duration) {
	m.flushSeconds.Observe(took.Seconds())
	m.flushSamples.Observe(float64(n.Samples()))
	if err != nil {
		m.flushes.WithLabelValues("error").Inc()
		return
	}
	m.flushes.WithLabelValues("ok").Inc()
	m.samples.Add(float64(n.Floats))
	m.histograms.Add(float64(n.Hists))
	m.exemplars.Add(float64(n.Exemplars))
}
