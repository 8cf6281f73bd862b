package wire

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of OTLP's messages (opentelemetry-proto, metrics/v1/metrics.proto).
const (
	otlpResourceMetrics protowire.Number = 1
	otlpResource        protowire.Number = 1
	otlpScopeMetrics    protowire.Number = 2
	otlpAttributes      protowire.Number = 1 // of a resource
	otlpMetrics         protowire.Number = 2
	otlpName            protowire.Number = 1
	otlpGauge           protowire.Number = 5
	otlpSum             protowire.Number = 7
	otlpPoints          protowire.Number = 1
	otlpTemporality     protowire.Number = 2
	otlpMonotonic       protowire.Number = 3
	otlpTime            protowire.Number = 3
	otlpDouble          protowire.Number = 4
	otlpPointAttributes protowire.Number = 7

	otlpCumulative = 2
)

// message is a protobuf message with the positions of its points' times. A point's value follows
// its time at a fixed distance.
type message struct {
	bytes []byte
	times []int
}

// add adds a message as a field.
func (m *message) add(num protowire.Number, sub message) {
	m.bytes = protowire.AppendVarint(protowire.AppendTag(m.bytes, num, protowire.BytesType), uint64(len(sub.bytes)))
	for _, at := range sub.times {
		m.times = append(m.times, len(m.bytes)+at)
	}
	m.bytes = append(m.bytes, sub.bytes...)
}

// newOTLP builds an ExportMetricsServiceRequest. Adjacent series with equal job and instance share
// a resource, and those of a name a metric. All numbers that change have fixed positions.
func newOTLP(series []Series) *Template {
	var all message
	for len(series) > 0 {
		n := 1
		for n < len(series) && origin(series[n].Labels) == origin(series[0].Labels) {
			n++
		}
		all.add(otlpResourceMetrics, resourceOf(series[:n]))
		series = series[n:]
	}
	return &Template{head: all.bytes, times: all.times}
}

// origin is what identifies a resource.
func origin(lset labels.Labels) [2]string {
	return [2]string{lset.Get(model.JobLabel), lset.Get(model.InstanceLabel)}
}

func resourceOf(series []Series) (out message) {
	var resource, scope message
	from := origin(series[0].Labels)
	resource.add(otlpAttributes, keyValue("service.name", from[0]))
	resource.add(otlpAttributes, keyValue("service.instance.id", from[1]))
	out.add(otlpResource, resource)
	for len(series) > 0 {
		n, name := 1, series[0].Labels.Get(model.MetricNameLabel)
		for n < len(series) && series[n].Labels.Get(model.MetricNameLabel) == name {
			n++
		}
		scope.add(otlpMetrics, metricOf(name, series[:n]))
		series = series[n:]
	}
	out.add(otlpScopeMetrics, scope)
	return out
}

func metricOf(name string, series []Series) (out message) {
	var data message
	for _, s := range series {
		data.add(otlpPoints, pointOf(s.Labels))
	}
	kind := otlpGauge
	if series[0].Counter {
		kind = otlpSum
		data.bytes = protowire.AppendVarint(protowire.AppendTag(data.bytes, otlpTemporality, protowire.VarintType), otlpCumulative)
		data.bytes = protowire.AppendVarint(protowire.AppendTag(data.bytes, otlpMonotonic, protowire.VarintType), 1)
	}
	out.bytes = protowire.AppendString(protowire.AppendTag(out.bytes, otlpName, protowire.BytesType), name)
	out.add(kind, data)
	return out
}

func pointOf(lset labels.Labels) (out message) {
	out.bytes = protowire.AppendTag(out.bytes, otlpTime, protowire.Fixed64Type)
	out.times = []int{len(out.bytes)}
	out.bytes = protowire.AppendFixed64(out.bytes, 0)
	out.bytes = protowire.AppendFixed64(protowire.AppendTag(out.bytes, otlpDouble, protowire.Fixed64Type), 0)
	lset.Range(func(l labels.Label) {
		switch l.Name {
		case model.MetricNameLabel, model.JobLabel, model.InstanceLabel:
		default:
			out.add(otlpPointAttributes, keyValue(l.Name, l.Value))
		}
	})
	return out
}

// keyValue is a KeyValue: key = 1, value = 2, an AnyValue: string_value = 1.
func keyValue(key, value string) (out message) {
	out.bytes = protowire.AppendString(protowire.AppendTag(out.bytes, 1, protowire.BytesType), key)
	text := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	out.add(2, message{bytes: text})
	return out
}

// appendOTLP appends the message with its points set to values at ts (ms).
func (t *Template) appendOTLP(dst []byte, ts int64, values []float64) []byte {
	from := len(dst)
	dst = append(dst, t.head...)
	for i, at := range t.times {
		point := dst[from+at:]
		binary.LittleEndian.PutUint64(point, uint64(ts)*1e6)
		binary.LittleEndian.PutUint64(point[9:], math.Float64bits(values[i])) // behind the value's tag
	}
	return dst
}
