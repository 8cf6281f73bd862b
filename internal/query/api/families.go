package api

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Sample is a series' most recent sample: a histogram if H is set, else a float.
type Sample struct {
	Name   string
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.FloatHistogram
}

// Kind returns the type of the family that the sample belongs to.
func (s Sample) Kind() dto.MetricType {
	switch {
	case s.H == nil:
		return dto.MetricType_UNTYPED
	case s.H.CounterResetHint == histogram.GaugeType:
		return dto.MetricType_GAUGE_HISTOGRAM
	default:
		return dto.MetricType_HISTOGRAM
	}
}

// CarriesNativeHistograms reports whether a format can express native histograms: only protobuf
// can. Those with custom buckets become classic histograms, which every format has.
func CarriesNativeHistograms(f expfmt.Format) bool {
	switch f.FormatType() {
	case expfmt.TypeProtoDelim, expfmt.TypeProtoText, expfmt.TypeProtoCompact:
		return true
	default:
		return false
	}
}

// Families groups sorted samples by name and kind. A name with samples of two kinds becomes two
// families, which only Prometheus' own parser accepts, the intended reader. A sample gets those of
// the external labels whose names it does not have. There is always a label instance, if only an
// empty one, which keeps the scraping server from adding its own.
func Families(samples []Sample, external labels.Labels, native bool) []*dto.MetricFamily {
	added := labelPairs(external)
	if !external.Has(model.InstanceLabel) {
		added = append(added, &dto.LabelPair{Name: new(string(model.InstanceLabel)), Value: new("")})
	}
	slices.SortFunc(added, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	var (
		res  []*dto.MetricFamily
		last *dto.MetricFamily
	)
	for _, s := range samples {
		if s.H != nil && !s.H.UsesCustomBuckets() && !native {
			continue
		}
		if last == nil || last.GetName() != s.Name || last.GetType() != s.Kind() {
			last = &dto.MetricFamily{Name: new(s.Name), Type: s.Kind().Enum()}
			res = append(res, last)
		}
		last.Metric = append(last.Metric, metric(s, added))
	}
	return res
}

func metric(s Sample, added []*dto.LabelPair) *dto.Metric {
	m := &dto.Metric{Label: labelPairs(s.Labels), TimestampMs: new(s.T)}
	for _, l := range added {
		if !s.Labels.Has(l.GetName()) {
			m.Label = append(m.Label, l)
		}
	}
	switch {
	case s.H == nil:
		m.Untyped = &dto.Untyped{Value: new(s.V)}
	case s.H.UsesCustomBuckets():
		// The count implies the +Inf bucket.
		counts := make([]float64, len(s.H.CustomValues)+1) // the last one is above all bounds
		for it := s.H.PositiveBucketIterator(); it.Next(); {
			if b := it.At(); b.Index >= 0 && int(b.Index) < len(counts) {
				counts[b.Index] += b.Count
			}
		}
		res := &dto.Histogram{SampleCountFloat: new(s.H.Count), SampleSum: new(s.H.Sum)}
		cumulative := 0.0
		for i, bound := range s.H.CustomValues {
			cumulative += counts[i]
			res.Bucket = append(res.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCountFloat: new(cumulative)})
		}
		m.Histogram = res
	default:
		m.Histogram = &dto.Histogram{
			SampleCountFloat: new(s.H.Count),
			SampleSum:        new(s.H.Sum),
			Schema:           new(s.H.Schema),
			ZeroThreshold:    new(s.H.ZeroThreshold),
			ZeroCountFloat:   new(s.H.ZeroCount),
			PositiveSpan:     bucketSpans(s.H.PositiveSpans),
			PositiveCount:    s.H.PositiveBuckets,
			NegativeSpan:     bucketSpans(s.H.NegativeSpans),
			NegativeCount:    s.H.NegativeBuckets,
		}
	}
	return m
}

// labelPairs returns the labels without the name.
func labelPairs(ls labels.Labels) (pairs []*dto.LabelPair) {
	ls.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel && l.Value != "" {
			pairs = append(pairs, &dto.LabelPair{Name: new(l.Name), Value: new(l.Value)})
		}
	})
	return pairs
}

func bucketSpans(spans []histogram.Span) []*dto.BucketSpan {
	if len(spans) == 0 {
		return nil
	}
	res := make([]*dto.BucketSpan, len(spans))
	for i, s := range spans {
		res[i] = &dto.BucketSpan{Offset: new(s.Offset), Length: new(s.Length)}
	}
	return res
}
