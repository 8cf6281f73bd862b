package listen

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of one listener.
type metrics struct {
	lines   *prometheus.CounterVec // by transport
	dropped *prometheus.CounterVec // by reason
	ignored *prometheus.CounterVec // by reason
	refused prometheus.Counter
	retries prometheus.Counter
	open    prometheus.Gauge
}

// The reasons of dropped lines.
const (
	droppedFull     = "queue_full"
	droppedMemory   = "memory_limit"
	droppedLong     = "line_too_long"
	droppedPartial  = "incomplete"
	droppedShutdown = "shutdown"
	droppedRefused  = "batch_refused"
	droppedMessage  = "invalid_message"
	droppedPoint    = "invalid_point"
	droppedDefect   = "internal_error"
)

func newMetrics(reg prometheus.Registerer, protocol string, queued func() float64) *metrics {
	f := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"protocol": protocol}, reg))
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "promlake", Subsystem: "listener", Name: name, Help: help}
	}
	f.NewGaugeFunc(prometheus.GaugeOpts(opts("queue_bytes", "Lines that wait to be appended or are being appended, in bytes.")), queued)
	return &metrics{
		lines:   f.NewCounterVec(prometheus.CounterOpts(opts("lines_total", "Complete lines received, by transport.")), []string{"transport"}),
		dropped: f.NewCounterVec(prometheus.CounterOpts(opts("dropped_lines_total", "Lines that were received and are lost, by reason: queue_full and memory_limit (UDP), line_too_long, incomplete (a connection ended within a line), batch_refused, shutdown, internal_error, invalid_message and invalid_point (pickle), invalid_line, event, conflicting_type, max_series, max_set_values and max_state_bytes (StatsD, whose lines have several events).")), []string{"reason"}),
		ignored: f.NewCounterVec(prometheus.CounterOpts(opts("ignored_parts_total", "Events of StatsD that count without a part of them, by reason: invalid_tag (left out), invalid_sample_rate (the event counts once).")), []string{"reason"}),
		refused: f.NewCounter(prometheus.CounterOpts(opts("refused_batches_total", "Batches of lines of which at least a part breaks a rule or a limit; the log has the first reason."))),
		retries: f.NewCounter(prometheus.CounterOpts(opts("failed_appends_total", "Appends that failed and are repeated."))),
		open:    f.NewGauge(prometheus.GaugeOpts(opts("connections", "TCP connections that are open."))),
	}
}
