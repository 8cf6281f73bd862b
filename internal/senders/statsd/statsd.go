// Package statsd reads lines of StatsD and adds them up
// (https://github.com/statsd/statsd/blob/master/docs/metric_types.md), with the tags of DogStatsD,
// InfluxDB, Librato and SignalFx. Names, units and types of metrics are those that statsd_exporter
// has without a mapping.
package statsd

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Timers is what timers, histograms and distributions become.
type Timers string

// The forms.
const (
	// Summary is a summary with the quantiles 0.5, 0.9 and 0.99 of the last ten minutes.
	Summary Timers = "summary"
	// Native is a native histogram.
	Native Timers = "native-histogram"
)

// Settings are those of an aggregator.
type Settings struct {
	Timers       Timers
	MaxSeries    int           // that are written at a flush
	MaxSetValues int           // distinct values of all sets between two flushes
	TTL          time.Duration // after its last event a series ends; 0: never

	// MaxStateBytes bounds the memory of all of this. It counts as a quarter of the limit of Memory,
	// the process's budget to which it is charged, if that is less.
	MaxStateBytes int64
	Memory        *memory.Budget
}

// The reasons for which events are left out.
const (
	ReasonLine      = "invalid_line"
	ReasonEvent     = "event" // an event or a service check of DogStatsD
	ReasonConflict  = "conflicting_type"
	ReasonSeries    = "max_series"
	ReasonSetValues = "max_set_values"
	// ReasonStateBytes: there is no memory for more series, or for more values of sets.
	ReasonStateBytes = "max_state_bytes"
)

// The reasons for which a part of an event is ignored.
const (
	ReasonTag  = "invalid_tag"
	ReasonRate = "invalid_sample_rate" // the event counts once
)

// refuse returns the error for events, or parts of them, that are left out.
func refuse(reason remotewrite.Reason, format string, args ...any) error {
	return &remotewrite.Rejection{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// kind is what events of a metric add up to.
type kind uint8

const (
	counter kind = iota
	gauge
	observer // timers, histograms and distributions
	set
)

func (k kind) String() string { return [...]string{"counter", "gauge", "timer", "set"}[k] }

// objectives are the quantiles of summaries with their errors, as statsd_exporter has them.
var objectives = map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.001}

const (
	// maxAge is the time for which summaries remember observations.
	maxAge = 10 * time.Minute
	// bucketFactor bounds how much wider a bucket of a native histogram is than the one before.
	bucketFactor = 1.1
	// maxBuckets is the number of buckets beyond which a native histogram gets a lower resolution.
	maxBuckets = 160
)

func newTimer(form Timers) timer {
	if form == Native {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "timer", NativeHistogramBucketFactor: bucketFactor, NativeHistogramMaxBucketNumber: maxBuckets,
		})
	}
	return prometheus.NewSummary(prometheus.SummaryOpts{Name: "timer", Objectives: objectives, MaxAge: maxAge})
}

// native returns a native histogram as the stage stores it.
func native(h *dto.Histogram) *histogram.Histogram {
	spans := func(in []*dto.BucketSpan) []histogram.Span {
		out := make([]histogram.Span, 0, len(in))
		for _, s := range in {
			out = append(out, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
		}
		return out
	}
	out := &histogram.Histogram{
		Schema: h.GetSchema(), ZeroThreshold: h.GetZeroThreshold(), ZeroCount: h.GetZeroCount(), Count: h.GetSampleCount(), Sum: h.GetSampleSum(),
		PositiveSpans: spans(h.GetPositiveSpan()), PositiveBuckets: h.GetPositiveDelta(),
		NegativeSpans: spans(h.GetNegativeSpan()), NegativeBuckets: h.GetNegativeDelta(),
	}
	if h.GetSampleCount() == 0 { // the span that marks an empty one as native
		out.PositiveSpans = nil
	}
	return out
}
