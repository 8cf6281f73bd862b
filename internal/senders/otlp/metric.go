package otlp

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// kind is the kind of a metric.
type kind byte

// The kinds.
const (
	gauge kind = 1 + iota
	counter
	upDownCounter
	classic
	exponential
	summary
)

func (k kind) translated() otlptranslator.MetricType {
	return [...]otlptranslator.MetricType{
		gauge: otlptranslator.MetricTypeGauge, counter: otlptranslator.MetricTypeMonotonicCounter, upDownCounter: otlptranslator.MetricTypeNonMonotonicCounter,
		classic: otlptranslator.MetricTypeHistogram, exponential: otlptranslator.MetricTypeExponentialHistogram, summary: otlptranslator.MetricTypeSummary,
	}[k]
}

// aggregationTemporality is the AggregationTemporality of a metric.
type aggregationTemporality uint64

// The temporalities.
const (
	delta      aggregationTemporality = 1
	cumulative aggregationTemporality = 2
)

// metric is the metric whose data points are being read.
type metric struct {
	name, unit, help []byte
	kind             kind
	temporality      aggregationTemporality // of sums and histograms
	family           *family
	key              series.Key // of the metric of this resource and scope
}

// typeName is the type of the metric at hand in Prometheus' words.
func (d *decoder) typeName() string {
	m := &d.metric
	if m.temporality == delta && d.set.NativeDelta {
		return string(model.MetricTypeUnknown)
	}
	return string([...]model.MetricType{
		gauge: model.MetricTypeGauge, counter: model.MetricTypeCounter, upDownCounter: model.MetricTypeGauge,
		classic: model.MetricTypeHistogram, exponential: model.MetricTypeHistogram, summary: model.MetricTypeSummary,
	}[m.kind])
}

// The fields of a Metric with its data points.
const (
	dataGauge       = 5
	dataSum         = 7
	dataHistogram   = 9
	dataExponential = 10
	dataSummary     = 11
)

// readMetric reads a Metric: name = 1, description = 2, unit = 3, and one of the fields with data.
func (d *decoder) readMetric(msg []byte) error {
	d.metric = metric{}
	m := &d.metric
	var data protowire.Number
	var whole span // a field that is repeated is merged, which means to read its parts in a row
	r := read(msg, "Metric")
	for r.next() {
		switch r.num {
		case 1:
			m.name = r.bytes()
		case 2:
			m.help = r.bytes()
		case 3:
			m.unit = r.bytes()
		case dataGauge, dataSum, dataHistogram, dataExponential, dataSummary:
			if r.num != data { // only the last one is set
				data, whole = r.num, span{}
			}
			whole.join(r.bytes())
		}
	}
	if r.err != nil {
		return r.err
	}
	return d.readData(data, whole.bytes)
}

// readData reads a Gauge, Sum, Histogram, ExponentialHistogram or Summary: data_points = 1,
// aggregation_temporality = 2, is_monotonic = 3.
func (d *decoder) readData(data protowire.Number, msg []byte) error {
	m := &d.metric
	points, monotonic := 0, false
	r := read(msg, "data")
	for r.next() {
		switch {
		case r.num == 1:
			points++
			r.is(protowire.BytesType)
		case r.num == 2 && data != dataGauge && data != dataSummary:
			m.temporality = aggregationTemporality(r.varint())
		case r.num == 3 && data == dataSum:
			monotonic = r.varint() != 0
		}
	}
	if r.err != nil {
		return r.err
	}
	if points == 0 {
		return nil
	}
	var readPoint func([]byte) error
	switch data {
	case dataGauge:
		m.kind, readPoint = gauge, d.number
	case dataSum:
		m.kind, readPoint = upDownCounter, d.number
		if monotonic {
			m.kind = counter
		}
	case dataHistogram:
		m.kind, readPoint = classic, d.explicit
	case dataExponential:
		m.kind, readPoint = exponential, d.exponential
	case dataSummary:
		m.kind, readPoint = summary, d.summary
	}
	if data != dataGauge && data != dataSummary {
		if err := d.checkTemporality(); err != nil {
			return d.reject(err, points)
		}
	}
	if m.family = d.names.of(m); m.family.err != nil {
		return d.reject(invalidName(m.family.err), points)
	}
	// The key is what the metric's series share.
	d.text = append(append(d.text[:0], remotewrite.KeysOfOTLP, 'm'), byte(m.kind), byte(m.temporality))
	d.text = appendKey(appendKey(d.text, d.resource.key), d.scope.key)
	d.text = remotewrite.AppendKey(remotewrite.AppendKey(d.text, m.name), m.unit)
	m.key = d.c.Key(d.text)
	if err := each(msg, 1, "data", readPoint); err != nil {
		return err
	}
	return d.describe(segment.Metadata{Metric: m.family.name, Type: d.typeName(), Help: remotewrite.View(m.help), Unit: m.family.unit})
}

// errFalling is the reason why delta points of sums that may fall are refused: the value of such a
// sum matters, and without all points since its beginning nobody knows it.
var errFalling = errors.New("a sum that is not monotonic is refused with delta temporality: send it as cumulative, " +
	"as SDKs do with OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta, or store its points as they are (otlp.native-delta-ingestion)")

func (d *decoder) checkTemporality() error {
	switch t := d.metric.temporality; {
	case t == delta && d.metric.kind == upDownCounter && !d.set.NativeDelta:
		return &remotewrite.Rejection{Reason: remotewrite.ReasonTemporality, Err: fmt.Errorf("metric %s: %w", quote(d.metric.name), errFalling)}
	case t == cumulative, t == delta:
		return nil
	default:
		return &remotewrite.Rejection{Reason: remotewrite.ReasonTemporality, Err: fmt.Errorf("metric %s: aggregation temporality %d is neither delta (1) nor cumulative (2)", quote(d.metric.name), t)}
	}
}

func invalidName(err error) error {
	return &remotewrite.Rejection{Reason: remotewrite.ReasonInvalidName, Err: err}
}

func quote(b []byte) string { return remotewrite.Quote(string(b)) }
