package faults

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

// protocol is a way to write samples. A request has samples of one series: {metric, s}.
type protocol struct {
	name, path, contentType string
	metric                  string // as PromQL reads it
	unit                    int64  // of times, ms
	encode                  func(series string, points []sample) []byte
}

var protocols = []protocol{
	{"remote_write", "/api/v1/write", "application/x-protobuf", "m", 1, encodeRemoteWrite},
	{"OTLP", "/otlp/v1/metrics", "application/x-protobuf", "otlp_m", 1, encodeOTLP},
	{"InfluxDB", "/api/v2/write?precision=ms", "", "influx_m", 1, func(s string, points []sample) []byte {
		return each(points, "\n", func(p sample) string { return fmt.Sprintf("influx,s=%s m=%s %d", s, p.v.number(), p.ts) })
	}},
	{"OpenTSDB", "/api/put", "application/json", "opentsdb_m", 1, func(s string, points []sample) []byte {
		return within("[", "]", each(points, ",", func(p sample) string {
			return fmt.Sprintf(`{"metric":"opentsdb_m","timestamp":%d,"value":%s,"tags":{"s":%q}}`, p.ts, p.v.number(), s)
		}))
	}},
	{"Datadog", "/api/v2/series", "application/json", "datadog_m", 1000, func(s string, points []sample) []byte {
		return within(fmt.Sprintf(`{"series":[{"metric":"datadog_m","type":3,"tags":["s:%s"],"points":[`, s), "]}]}", each(points, ",", func(p sample) string {
			return fmt.Sprintf(`{"timestamp":%d,"value":%s}`, p.ts/1000, p.v.number())
		}))
	}},
	{"text", "/api/v1/import/prometheus", "", "text_m", 1, func(s string, points []sample) []byte {
		return within("", "\n", each(points, "\n", func(p sample) string { return fmt.Sprintf("text_m{s=%q} %s %d", s, p.v.number(), p.ts) }))
	}},
	{"JSON lines", "/api/v1/import", "", "json_m", 1, func(s string, points []sample) []byte {
		return each(points, "\n", func(p sample) string {
			return fmt.Sprintf(`{"metric":{"__name__":"json_m","s":%q},"values":[%s],"timestamps":[%d]}`, s, p.v.number(), p.ts)
		})
	}},
	{"Datadog 1", "/datadog/api/v1/series", "application/json", "datadog_1_m", 1000, func(s string, points []sample) []byte {
		return within(fmt.Sprintf(`{"series":[{"metric":"datadog_1_m","type":"gauge","tags":["s:%s"],"points":[`, s), "]}]}", each(points, ",", func(p sample) string {
			return fmt.Sprintf(`[%d,%s]`, p.ts/1000, p.v.number())
		}))
	}},
	{"Datadog protobuf", "/api/v2/series", "application/x-protobuf", "datadog_p_m", 1000, encodeDatadog},
	{"Datadog sketches", "/datadog/api/beta/sketches", "application/x-protobuf", "datadog_sketch_m", 1000, encodeSketches},
	{"remote_write histograms", "/api/v1/write", "application/x-protobuf", "hist_m", 1, encodeHistograms},
	{"OTLP histograms", "/otlp/v1/metrics", "application/x-protobuf", "otlp_hist_m", 1, encodeExponential},
	{"OTLP deltas", "/otlp/v1/metrics", "application/x-protobuf", "otlp_delta_m_total", 1, encodeDelta},
	{"CSV", "/api/v1/import/csv?format=1:label:s,2:metric:csv_m,3:time:unix_ms", "", "csv_m", 1, func(s string, points []sample) []byte {
		return each(points, "\n", func(p sample) string { return fmt.Sprintf("%s,%s,%d", s, p.v.number(), p.ts) })
	}},
}

// deletion is the request that deletes samples.
var deletion = &protocol{name: "deletion", path: "/api/v1/admin/tsdb/delete_series"}

// pushing is a push to a Pushgateway.
var pushing = &protocol{name: "Pushgateway", path: "/metrics/job/faults", metric: "push_m"}

func (v value) number() string { return strconv.FormatFloat(float64(v), 'f', -1, 64) }

func each(points []sample, between string, text func(sample) string) []byte {
	var all []string
	for _, p := range points {
		all = append(all, text(p))
	}
	return []byte(strings.Join(all, between))
}

func within(before, after string, b []byte) []byte { return []byte(before + string(b) + after) }

func encodeRemoteWrite(s string, points []sample) []byte {
	series := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "s", Value: s}}}
	for _, p := range points {
		series.Samples = append(series.Samples, prompb.Sample{Timestamp: p.ts, Value: float64(p.v)})
	}
	return writeRequest(series)
}

func writeRequest(series prompb.TimeSeries) []byte {
	body, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series}}).Marshal()
	if err != nil {
		panic(err) // it is a message of valid strings
	}
	return snappy.Encode(nil, body)
}

func encodeOTLP(s string, points []sample) []byte {
	return exportRequest("otlp_m", func(m pmetric.Metric) {
		gauge := m.SetEmptyGauge()
		for _, p := range points {
			x := gauge.DataPoints().AppendEmpty()
			x.Attributes().PutStr("s", s)
			x.SetTimestamp(nanoseconds(p.ts))
			x.SetDoubleValue(float64(p.v))
		}
	})
}

// encodeDelta writes points of delta temporality, of a millisecond each.
func encodeDelta(s string, points []sample) []byte {
	return exportRequest("otlp_delta_m", func(m pmetric.Metric) {
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		for _, p := range points {
			x := sum.DataPoints().AppendEmpty()
			x.Attributes().PutStr("s", s)
			x.SetStartTimestamp(nanoseconds(p.ts - 1))
			x.SetTimestamp(nanoseconds(p.ts))
			x.SetIntValue(int64(p.v))
		}
	})
}

func exportRequest(name string, fill func(pmetric.Metric)) []byte {
	all := pmetric.NewMetrics()
	m := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	fill(m)
	body, err := pmetricotlp.NewExportRequestFromMetrics(all).MarshalProto()
	if err != nil {
		panic(err) // it is a message of valid strings
	}
	return body
}

func nanoseconds(ms int64) pcommon.Timestamp { return pcommon.Timestamp(ms * 1_000_000) }

// encodeDatadog writes a MetricPayload.
func encodeDatadog(s string, points []sample) []byte {
	series := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "datadog_p_m")
	series = protowire.AppendString(protowire.AppendTag(series, 3, protowire.BytesType), "s:"+s)
	for _, p := range points {
		point := appendDouble(nil, 1, float64(p.v))
		point = protowire.AppendVarint(protowire.AppendTag(point, 2, protowire.VarintType), uint64(p.ts/1000))
		series = protowire.AppendBytes(protowire.AppendTag(series, 4, protowire.BytesType), point)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), series)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}
