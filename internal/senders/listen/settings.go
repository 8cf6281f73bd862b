// Package listen takes lines of a protocol over TCP and UDP and appends them to the ingest stage.
//
// Each line is a sample, or lines are added up and the sums are appended at intervals. Connections
// can also carry messages that become lines.
//
// Such protocols have no answers, so a sender does not learn when its samples are durable. Lines
// wait in a bounded queue. While it is full, TCP connections are not read, so that senders wait;
// lines that come over UDP are dropped and counted. Lines in the queue are appended again until the
// stage has them. A process that ends without an orderly shutdown loses the lines in its queue.
package listen

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Source reads samples into a batch (see remotewrite.Collect). It can be called again.
type Source = func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error)

// Protocol is what lines mean.
type Protocol struct {
	Name  string // in metrics and logs
	Flags string // the prefix of its flags, if it is not the name
	// Decode reads complete lines that came at a time (see remotewrite.Collect).
	Decode func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error)
	// Unpack makes lines of a message, if connections carry messages after their length (4 bytes,
	// big-endian) instead of lines. Such protocols have no datagrams. It calls add with lines,
	// which are valid until add returns, and returns how many points are left out, the reason of
	// the first, and the error that ended it. nil: connections carry lines.
	Unpack func(message []byte, add func(lines []byte)) (bad int, why, err error)
	// MaxMessage is the longest message, in bytes.
	MaxMessage int
	// Aggregate adds lines up instead of Decode; nil: each line is a sample.
	Aggregate Aggregate
}

// Aggregate adds lines up in bounded memory. It is safe for concurrent use.
type Aggregate interface {
	// Add takes complete lines, which are valid until it returns. drop is called for each event
	// that is left out, and ignore for each of which only a part is.
	Add(lines []byte, drop, ignore func(reason string, err error))
	// Flush returns what the lines add up to now: the number of samples, their memory in bytes, and
	// their source. A Flush that panics drops what was added, so that the next one does not panic too.
	Flush() (samples int, size int64, source Source)
}

// Settings are those of one listener.
type Settings struct {
	Address        string        // host:port for TCP and UDP
	Tenant         string        // that lines are written to
	QueueBytes     int64         // of lines that wait
	MaxConnections int           // TCP
	Interval       time.Duration // longest wait of a line for others
}

// Sink makes samples durable. refused says what was refused for good; after an error the samples
// should be appended again.
type Sink interface {
	Append(ctx context.Context, tenant string, size int64, source Source) (refused, err error)
}

const (
	// maxLine is the longest line, in bytes, and the memory of a connection.
	maxLine = 16 << 10
	// maxDatagram is the largest payload of UDP.
	maxDatagram = 64 << 10
	// batchBytes are appended at once; they are fewer samples than an ingestion burst has.
	batchBytes = 1 << 20
	// idle is how long a connection may be silent.
	idle = 15 * time.Minute
	// maxArriving is the memory (bytes) for messages that arrive; beyond it connections wait.
	maxArriving = 32 << 20
	// messageTime is how long a message may take to arrive.
	messageTime = time.Minute
	// firstPause and lastPause bound the time between two attempts to append lines.
	firstPause, lastPause = 100 * time.Millisecond, 5 * time.Second
	// complainEvery is the time between two log entries on refused or dropped lines.
	complainEvery = time.Minute
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
	f := telemetry.Metrics{Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"protocol": protocol}, reg), Prefix: "promlake_listener_"}
	telemetry.Registered(f.Registerer, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "promlake_listener_queue_bytes", Help: "Lines that wait to be appended or are being appended, in bytes.",
	}, queued))
	return &metrics{
		lines:   f.Counters("lines_total", "Complete lines received, by transport.", "transport"),
		dropped: f.Counters("dropped_lines_total", "Lines that were received and are lost, by reason: queue_full and memory_limit (UDP), line_too_long, incomplete (a connection ended within a line), batch_refused, shutdown, internal_error, invalid_message and invalid_point (pickle), invalid_line, event, conflicting_type, max_series, max_set_values and max_state_bytes (StatsD, whose lines have several events).", "reason"),
		ignored: f.Counters("ignored_parts_total", "Events of StatsD that count without a part of them, by reason: invalid_tag (left out), invalid_sample_rate (the event counts once).", "reason"),
		refused: f.Counter("refused_batches_total", "Batches of lines of which at least a part breaks a rule or a limit; the log has the first reason."),
		retries: f.Counter("failed_appends_total", "Appends that failed and are repeated."),
		open:    f.Gauge("connections", "TCP connections that are open."),
	}
}
