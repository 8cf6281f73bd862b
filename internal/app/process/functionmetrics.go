package process

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/aws/lambda"
)

// functionMetrics measure what AWS bills for a function:
//
//	promlake_function_invocations_total{event}    invocations, by lambda.Event
//	promlake_function_duration_seconds{event}     histogram, from event's arrival to end of work
//	promlake_function_billed_gb_seconds_total     duration × memory, starts included
//	promlake_function_cold_starts_total           1 from the first invocation on; its sum over instances
//	                                              is the number of starts
type functionMetrics struct {
	invocations *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	billed      prometheus.Counter
	cold        prometheus.Counter

	gb    float64       // memory of the function
	start time.Duration // how long the start took, which is billed with the first invocation
	first sync.Once
}

func newFunctionMetrics(reg prometheus.Registerer, memory int64, start time.Duration) *functionMetrics {
	f := promauto.With(reg)
	return &functionMetrics{
		invocations: f.NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_function_invocations_total",
			Help: "Invocations of this function's environment, by kind of event.",
		}, []string{"event"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "promlake_function_duration_seconds",
			Help:    "Seconds from an event's arrival until its work was done, by kind of event.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900},
		}, []string{"event"}),
		billed: f.NewCounter(prometheus.CounterOpts{
			Name: "promlake_function_billed_gb_seconds_total",
			Help: "Seconds of work, each invocation's rounded up to a millisecond, times the function's memory in GB (2^30 bytes).",
		}),
		cold: f.NewCounter(prometheus.CounterOpts{
			Name: "promlake_function_cold_starts_total",
			Help: "Environments of this function that were started for an invocation.",
		}),
		gb:    float64(memory) / (1 << 30),
		start: start,
	}
}

// begin counts the start of the environment with its first invocation.
func (m *functionMetrics) begin() {
	m.first.Do(func() {
		m.cold.Inc()
		m.bill(m.start)
	})
}

// end counts an invocation.
func (m *functionMetrics) end(ctx context.Context, now time.Time) {
	i, ok := lambda.Current(ctx)
	if !ok {
		return
	}
	took := now.Sub(i.Start)
	m.invocations.WithLabelValues(string(i.Event)).Inc()
	m.duration.WithLabelValues(string(i.Event)).Observe(took.Seconds())
	m.bill(took)
}

// bill rounds up to a millisecond, as AWS does (https://aws.amazon.com/lambda/pricing).
func (m *functionMetrics) bill(d time.Duration) {
	m.billed.Add(math.Ceil(d.Seconds()*1000) / 1000 * m.gb)
}
