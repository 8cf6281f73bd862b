package instrument

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

type metrics struct {
	requests     *prometheus.CounterVec
	bytes        *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	readFailures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_objstore_"}
	m := &metrics{
		requests: f.Counters("requests_total", "Object store calls by operation and outcome.", "op", "status"),
		bytes:    f.Counters("bytes_total", "Bytes read from and written to the object store.", "op"),
		duration: f.Histograms("request_duration_seconds", "Duration of object store calls in seconds; of get, until the body can be read.",
			[]float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30}, "op"),
		readFailures: f.Counter("read_failures_total", "Bodies of successful gets that failed while they were read."),
	}
	// create all series at the start, so that rates include the first call
	for _, op := range []string{opGet, opPut, opList, opDelete} {
		m.requests.WithLabelValues(op, "ok")
		m.duration.WithLabelValues(op)
	}
	m.bytes.WithLabelValues(opGet)
	m.bytes.WithLabelValues(opPut)
	return m
}

func (m *metrics) observe(op string, took time.Duration, err error) {
	m.requests.WithLabelValues(op, status(err)).Inc()
	m.duration.WithLabelValues(op).Observe(took.Seconds())
}

// status returns the outcome of a call as a label value. The set of values is closed, so the number
// of series is bounded.
func status(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, objstore.ErrNotFound):
		return "not_found"
	case errors.Is(err, objstore.ErrPrecondition):
		return "precondition_failed"
	case errors.Is(err, objstore.ErrRange):
		return "range_not_satisfiable"
	case errors.Is(err, objstore.ErrInvalidKey):
		return "invalid_key"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	return "error"
}

// Writes remembers when this process last wrote what queries of a tenant read: a segment, or the
// manifest. A query that begins later must not use a listing from before. It is safe for concurrent
// use; the nil Writes remembers nothing.
type Writes struct {
	mu    sync.Mutex
	last  map[string]time.Time // by tenant
	floor time.Time            // counts for every tenant
}

// maxWrites is the number of tenants that are remembered one by one. Beyond it they are forgotten,
// and all tenants count as just written.
const maxWrites = 4096

// Last returns the time of the tenant's last write, or a later one; zero: there was none. It is on
// the clock of time.Now.
func (w *Writes) Last(tenant string) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.last[tenant]; t.After(w.floor) {
		return t
	}
	return w.floor
}

// note remembers that a put has ended. A put that failed may have had its effect.
func (w *Writes) note(k string) {
	tenant, ok := key.QueriedTenant(k)
	if w == nil || !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.last) >= maxWrites {
		clear(w.last)
		w.floor = now
	}
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[tenant] = now
}
