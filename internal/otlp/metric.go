package otlp

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
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

// temporality is the AggregationTemporality of a metric.
type temporality uint64

// The temporalities.
const (
	delta      temporality = 1
	cumulative temporality = 2
)

// metric is the metric whose data points are being read.
type metric struct {
	name, unit, help []byte
	kind             kind
	temporality      temporality // of sums and histograms
	family           *family
	key              series.Key // of the metric of this resource and scope
}

// typeName is the type in Prometheus' words.
func (m *metric) typeName() string {
	t := model.MetricTypeGauge
	switch m.kind {
	case counter:
		t = model.MetricTypeCounter
	case classic, exponential:
		t = model.MetricTypeHistogram
	case summary:
		t = model.MetricTypeSummary
	}
	if m.temporality == delta {
		t = model.MetricTypeUnknown
	}
	return string(t)
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
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		b = rest
		switch f.num {
		case 1, 2, 3, dataGauge, dataSum, dataHistogram, dataExponential, dataSummary:
			if err := f.message("Metric"); err != nil {
				return err
			}
		}
		switch f.num {
		case 1:
			m.name = f.data
		case 2:
			m.help = f.data
		case 3:
			m.unit = f.data
		case dataGauge, dataSum, dataHistogram, dataExponential, dataSummary:
			data = f.num
		}
	}
	// Fields that are repeated are merged, which means to read them one after another.
	var whole span
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		if b = rest; f.num == data && data != 0 {
			whole.join(f.data)
		}
	}
	return d.readData(data, whole.joined)
}

// readData reads a Gauge, Sum, Histogram, ExponentialHistogram or Summary: data_points = 1,
// aggregation_temporality = 2, is_monotonic = 3.
func (d *decoder) readData(data protowire.Number, msg []byte) error {
	m := &d.metric
	points, monotonic := 0, false
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		b = rest
		switch {
		case f.num == 1:
			points++
			err = f.message("data")
		case f.num == 2 && data != dataGauge && data != dataSummary:
			m.temporality, err = temporality(f.val), f.is(protowire.VarintType, "data")
		case f.num == 3 && data == dataSum:
			monotonic, err = f.val != 0, f.is(protowire.VarintType, "data")
		}
		if err != nil {
			return err
		}
	}
	if points == 0 {
		return nil
	}
	var read func([]byte) error
	switch data {
	case dataGauge:
		m.kind, read = gauge, d.number
	case dataSum:
		m.kind, read = upDownCounter, d.number
		if monotonic {
			m.kind = counter
		}
	case dataHistogram:
		m.kind, read = classic, d.explicit
	case dataExponential:
		m.kind, read = exponential, d.exponential
	case dataSummary:
		m.kind, read = summary, d.summary
	}
	if data != dataGauge && data != dataSummary {
		if err := d.checkTemporality(); err != nil {
			return d.reject(err, points)
		}
	}
	if m.family = d.names.of(m); m.family.err != nil {
		return d.reject(invalidName(m.family.err), points)
	}
	d.identifyMetric()
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return err
		}
		if msg = rest; f.num != 1 {
			continue
		}
		if err := read(f.data); err != nil {
			return err
		}
	}
	return d.describe(segment.Metadata{Metric: m.family.name, Type: m.typeName(), Help: string(m.help), Unit: m.family.unit})
}

// errDelta is the reason why delta points are refused.
var errDelta = errors.New("delta temporality is refused: set cumulative at the sender " +
	"(OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=cumulative, or the Collector's processor deltatocumulative), or store the points as they are (otlp.native-delta-ingestion)")

func (d *decoder) checkTemporality() error {
	switch t := d.metric.temporality; {
	case t == cumulative, t == delta && d.set.NativeDelta:
		return nil
	case t == delta:
		return &remotewrite.Rejection{Reason: remotewrite.ReasonTemporality, Err: fmt.Errorf("metric %s: %w", quote(d.metric.name), errDelta)}
	default:
		return &remotewrite.Rejection{Reason: remotewrite.ReasonTemporality, Err: fmt.Errorf("metric %s: aggregation temporality %d is neither delta (1) nor cumulative (2)", quote(d.metric.name), t)}
	}
}

// identifyMetric computes the key that the metric's series share.
func (d *decoder) identifyMetric() {
	m := &d.metric
	d.text = append(append(d.text[:0], 'O', 'm'), byte(m.kind), byte(m.temporality))
	d.text = appendText(appendText(appendKey(appendKey(d.text, d.resource.key), d.scope.key), m.name), m.unit)
	m.key = d.c.Key(d.text)
}

func invalidName(err error) error {
	return &remotewrite.Rejection{Reason: remotewrite.ReasonInvalidName, Err: err}
}

func quote(b []byte) string { return remotewrite.Quote(string(b)) }

func appendText[T string | []byte](dst []byte, text T) []byte {
	return remotewrite.AppendKey(dst, text)
}
