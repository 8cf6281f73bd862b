package instrument

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

type metrics struct {
	requests     *prometheus.CounterVec
	bytes        *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	readFailures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: telemetry.Registered(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_objstore_requests_total",
			Help: "Object store calls by operation and outcome.",
		}, []string{"op", "status"})),
		bytes: telemetry.Registered(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_objstore_bytes_total",
			Help: "Bytes read from and written to the object store.",
		}, []string{"op"})),
		duration: telemetry.Registered(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "promlake_objstore_request_duration_seconds",
			Help:    "Duration of object store calls in seconds; of get, until the body can be read.",
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30},
		}, []string{"op"})),
		readFailures: telemetry.Registered(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "promlake_objstore_read_failures_total",
			Help: "Bodies of successful gets that failed while they were read.",
		})),
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
