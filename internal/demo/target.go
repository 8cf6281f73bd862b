package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
)

// target is what one scrape of a Prometheus server would read.
type target struct {
	job, instance string
	gatherer      prometheus.Gatherer
}

// collect appends the target's present values to req, with the series `up`, as a scrape at ts (ms) would have written them.
// After an error the target is told as down, and what could be gathered is kept.
func (t target) collect(req *prompb.WriteRequest, ts int64, withMetadata bool) error {
	families, err := t.gatherer.Gather()
	samples, convErr := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Time(ts)}, families...)
	if err == nil {
		err = convErr
	}
	up := 1.0
	if err != nil {
		up, err = 0, fmt.Errorf("gather metrics of job %s: %w", t.job, err)
	}
	for _, s := range samples {
		t.append(req, s.Metric, ts, float64(s.Value))
	}
	t.append(req, model.Metric{model.MetricNameLabel: "up"}, ts, up)
	if withMetadata {
		for _, f := range families {
			req.Metadata = append(req.Metadata, metadata(f))
		}
	}
	return err
}

// append adds one sample, labelled with the target. The metric's own job and instance labels keep their values under
// exported_job and exported_instance, as in a scrape.
func (t target) append(req *prompb.WriteRequest, m model.Metric, ts int64, v float64) {
	labels := make([]prompb.Label, 0, len(m)+2)
	for name, value := range m {
		if value == "" {
			continue
		}
		if name == model.JobLabel || name == model.InstanceLabel {
			name = model.ExportedLabelPrefix + name
		}
		labels = append(labels, prompb.Label{Name: string(name), Value: string(value)})
	}
	labels = append(labels,
		prompb.Label{Name: model.JobLabel, Value: t.job},
		prompb.Label{Name: model.InstanceLabel, Value: t.instance})
	slices.SortFunc(labels, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) })
	req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
		Labels:  labels,
		Samples: []prompb.Sample{{Timestamp: ts, Value: v}},
	})
}

func metadata(f *dto.MetricFamily) prompb.MetricMetadata {
	kind := prompb.MetricMetadata_UNKNOWN
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		kind = prompb.MetricMetadata_COUNTER
	case dto.MetricType_GAUGE:
		kind = prompb.MetricMetadata_GAUGE
	case dto.MetricType_SUMMARY:
		kind = prompb.MetricMetadata_SUMMARY
	case dto.MetricType_HISTOGRAM:
		kind = prompb.MetricMetadata_HISTOGRAM
	case dto.MetricType_GAUGE_HISTOGRAM:
		kind = prompb.MetricMetadata_GAUGEHISTOGRAM
	}
	return prompb.MetricMetadata{Type: kind, MetricFamilyName: f.GetName(), Help: f.GetHelp(), Unit: f.GetUnit()}
}
