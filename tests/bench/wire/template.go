// Package wire encodes request bodies of remote_write and other protocols for a fixed list of
// series, over and over, with new values each time.
//
// What never changes between two scrapes (labels, symbols, metadata) is serialised once, so that a
// body costs a copy and one number a series. The bytes are those that upstream's own encoders
// produce for the same request (but −0 keeps its sign).
package wire

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protowire"
)

// Series describes a series of a Template.
type Series struct {
	Labels  labels.Labels // sorted by name
	Counter bool          // else a gauge; only version 2 carries the type
}

// Version is a version of the remote_write protocol, or another protocol.
type Version int

// The protocols.
const (
	V1        Version = 1  // prometheus.WriteRequest
	V2        Version = 2  // io.prometheus.write.v2.Request
	Influx    Version = 3  // InfluxDB's line protocol
	Text      Version = 4  // Prometheus' text format
	OTLP      Version = 5  // ExportMetricsServiceRequest
	Datadog   Version = 6  // datadog.agentpayload.MetricPayload
	OpenTSDB  Version = 7  // a list of OpenTSDB's data points in JSON
	JSONLines Version = 8  // VictoriaMetrics' lines of JSON
	CSV       Version = 9  // lines of CSV, in CSVFormat
	Graphite  Version = 10 // Graphite's plaintext protocol with tags
)

// names are those of the protocols, from V1.
var names = []string{"1", "2", "influx", "text", "otlp", "datadog", "opentsdb", "jsonlines", "csv", "graphite"}

// Parse returns the protocol with a name: 1 or 2 (of remote_write), influx, text, otlp, datadog,
// opentsdb, jsonlines, csv or graphite.
func Parse(name string) (Version, error) {
	if i := slices.Index(names, name); i >= 0 {
		return V1 + Version(i), nil
	}
	return 0, fmt.Errorf("protocol %q: want 1 or 2 (of remote_write), or one of %s", name, strings.Join(names[2:], ", "))
}

// Valid reports whether the protocol exists.
func (v Version) Valid() bool { return v >= V1 && int(v) <= len(names) }

func (v Version) String() string {
	if !v.Valid() {
		return fmt.Sprintf("unknown protocol %d", int(v))
	}
	return names[v-V1]
}

// Remote reports whether the protocol is remote_write.
func (v Version) Remote() bool { return v == V1 || v == V2 }

// record holds the constant bytes of one series: its labels go before its sample, the rest behind.
type record struct{ before, after []byte }

// Template encodes requests with one sample for each of its series. It is immutable and safe for
// concurrent use.
type Template struct {
	head    []byte // the bytes before the series; of OTLP, the whole message
	tail    []byte // of protocols of lines, replaces the last byte
	field   protowire.Number
	records []record

	line  func(dst []byte, r *record, ts int64, v float64) []byte // of protocols of lines
	times []int                                                   // of OTLP: positions in head
}

// New builds a template for series in the given order. The series' labels may be reused afterwards.
func New(v Version, series []Series) (*Template, error) {
	switch v {
	case V1:
		return newV1(series), nil
	case V2:
		return newV2(series), nil
	case Influx:
		return newInflux(series), nil
	case Text:
		return newText(series), nil
	case OTLP:
		return newOTLP(series), nil
	case Datadog:
		return newDatadog(series), nil
	case OpenTSDB:
		return newOpenTSDB(series), nil
	case JSONLines:
		return newJSONLines(series), nil
	case CSV:
		return newCSV(series), nil
	case Graphite:
		return newGraphite(series), nil
	}
	return nil, fmt.Errorf("protocol %d is not known", v)
}

// Len returns the number of series, which is also the number of samples of a body.
func (t *Template) Len() int { return max(len(t.records), len(t.times)) }

// Fields of TimeSeries and Sample, equal in both versions.
const (
	fieldLabels    protowire.Number = 1
	fieldSamples   protowire.Number = 2
	fieldValue     protowire.Number = 1
	fieldTimestamp protowire.Number = 2
)

// Append appends the body (before compression) with sample (ts, values[i]) for series i; ts is in
// ms since the Unix epoch. It panics if there are not Len values.
func (t *Template) Append(dst []byte, ts int64, values []float64) []byte {
	if len(values) != t.Len() {
		panic(fmt.Sprintf("wire: %d values for %d series", len(values), t.Len()))
	}
	if t.times != nil {
		return t.appendOTLP(dst, ts, values)
	}
	dst = append(dst, t.head...)
	if t.line != nil {
		for i, v := range values {
			dst = t.line(dst, &t.records[i], ts, v)
		}
		if len(t.tail) > 0 && len(values) > 0 {
			dst = append(dst[:len(dst)-1], t.tail...)
		}
		return dst
	}
	var buf [24]byte
	for i, v := range values {
		r := &t.records[i]
		sample := appendSample(buf[:0], ts, v)
		dst = protowire.AppendTag(dst, t.field, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(len(r.before)+2+len(sample)+len(r.after)))
		dst = append(dst, r.before...)
		dst = protowire.AppendTag(dst, fieldSamples, protowire.BytesType)
		dst = append(dst, byte(len(sample)))
		dst = append(dst, sample...)
		dst = append(dst, r.after...)
	}
	return dst
}

// appendSample encodes a Sample. proto3 omits zeros, but not −0, which has a bit set. The result
// has at most 20 bytes.
func appendSample(dst []byte, ts int64, v float64) []byte {
	if bits := math.Float64bits(v); bits != 0 {
		dst = protowire.AppendTag(dst, fieldValue, protowire.Fixed64Type)
		dst = protowire.AppendFixed64(dst, bits)
	}
	if ts != 0 {
		dst = protowire.AppendTag(dst, fieldTimestamp, protowire.VarintType)
		dst = protowire.AppendVarint(dst, uint64(ts))
	}
	return dst
}
