package faults

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
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
	body, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series}}).Marshal()
	if err != nil {
		panic(err) // it is a message of valid strings
	}
	return snappy.Encode(nil, body)
}

func encodeOTLP(s string, points []sample) []byte {
	all := pmetric.NewMetrics()
	m := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("otlp_m")
	gauge := m.SetEmptyGauge()
	for _, p := range points {
		x := gauge.DataPoints().AppendEmpty()
		x.Attributes().PutStr("s", s)
		x.SetTimestamp(pcommon.Timestamp(p.ts * 1_000_000))
		x.SetDoubleValue(float64(p.v))
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(all).MarshalProto()
	if err != nil {
		panic(err) // it is a message of valid strings
	}
	return body
}
