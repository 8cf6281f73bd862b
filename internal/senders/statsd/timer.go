package statsd

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
)

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

// empty is the histogram before the first observation, in the form of another one.
func empty(like *histogram.Histogram) *histogram.Histogram {
	return &histogram.Histogram{Schema: like.Schema, ZeroThreshold: like.ZeroThreshold}
}
