package selfwrite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Target is a registry and how to scrape it.
type Target struct {
	Gatherer prometheus.Gatherer
	// Labels are added to every series. A metric's own label of the same name is renamed to
	// exported_<name>, as in a scrape.
	Labels map[string]string
	// Keep reports whether a metric family is scraped; nil means all.
	Keep func(family string) bool
}

// Gather returns the families to keep. With an error it returns the families that could be
// gathered.
func (t Target) Gather() ([]*dto.MetricFamily, error) {
	families, err := t.Gatherer.Gather()
	if err != nil {
		err = fmt.Errorf("gather metrics: %w", err)
	}
	if t.Keep == nil {
		return families, err
	}
	return slices.DeleteFunc(slices.Clone(families), func(f *dto.MetricFamily) bool { return !t.Keep(f.GetName()) }), err
}

// Append appends to req a sample at ts (ms since 1970) for each series of the families.
func (t Target) Append(req *prompb.WriteRequest, families []*dto.MetricFamily, ts int64) error {
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Time(ts)}, families...)
	if err != nil {
		err = fmt.Errorf("read metrics: %w", err)
	}
	for _, s := range samples {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  t.labels(s.Metric),
			Samples: []prompb.Sample{{Timestamp: int64(s.Timestamp), Value: float64(s.Value)}},
		})
	}
	return err
}

// labels returns the labels sorted by name, as remote_write requires.
func (t Target) labels(m model.Metric) []prompb.Label {
	labels := make([]prompb.Label, 0, len(m)+len(t.Labels))
	for name, value := range m {
		if value == "" {
			continue
		}
		if _, ours := t.Labels[string(name)]; ours {
			name = model.ExportedLabelPrefix + name
		}
		labels = append(labels, prompb.Label{Name: string(name), Value: string(value)})
	}
	for name, value := range t.Labels {
		labels = append(labels, prompb.Label{Name: name, Value: value})
	}
	slices.SortFunc(labels, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) })
	return labels
}

// Metadata returns the remote_write metadata of a family.
func Metadata(f *dto.MetricFamily) prompb.MetricMetadata {
	// The names of types differ by an underscore, and what has no name is 0, which is unknown.
	kind := prompb.MetricMetadata_MetricType_value[strings.ReplaceAll(f.GetType().String(), "_", "")]
	return prompb.MetricMetadata{Type: prompb.MetricMetadata_MetricType(kind), MetricFamilyName: f.GetName(), Help: f.GetHelp(), Unit: f.GetUnit()}
}

// Zeros returns the counters, histograms and summaries that were created between since and until,
// with the value 0 at the time of their creation. Written before the first value of a series, they
// make rates include the increase to that value, like Prometheus' "created timestamp zero samples".
// Metrics without a creation time are omitted.
func Zeros(families []*dto.MetricFamily, since, until time.Time) []*dto.MetricFamily {
	var out []*dto.MetricFamily
	for _, f := range families {
		var zeros []*dto.Metric
		for _, m := range f.GetMetric() {
			if z := zero(m); z != nil && since.UnixMilli() < z.GetTimestampMs() && z.GetTimestampMs() < until.UnixMilli() {
				zeros = append(zeros, z)
			}
		}
		if zeros != nil {
			out = append(out, &dto.MetricFamily{Name: f.Name, Type: f.Type, Metric: zeros})
		}
	}
	return out
}

// zero returns the metric at its creation, or nil if it has no creation time.
func zero(m *dto.Metric) *dto.Metric {
	z := &dto.Metric{Label: m.GetLabel()}
	var created *timestamppb.Timestamp
	switch {
	case m.Counter != nil:
		created, z.Counter = m.Counter.GetCreatedTimestamp(), &dto.Counter{}
	case m.Histogram != nil:
		created, z.Histogram = m.Histogram.GetCreatedTimestamp(), &dto.Histogram{}
		for _, b := range m.Histogram.GetBucket() {
			z.Histogram.Bucket = append(z.Histogram.Bucket, &dto.Bucket{UpperBound: b.UpperBound})
		}
	case m.Summary != nil:
		created, z.Summary = m.Summary.GetCreatedTimestamp(), &dto.Summary{}
	}
	if created == nil {
		return nil
	}
	ms := created.AsTime().UnixMilli()
	z.TimestampMs = &ms
	return z
}
