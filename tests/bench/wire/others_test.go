package wire_test

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/promlake/promlake/tests/bench/wire"
)

func otherSeries() []wire.Series {
	ls := labels.FromStrings
	return []wire.Series{
		{Labels: ls("__name__", "a_total", "instance", "i", "job", "j", "path", `/x y,z="1"`), Counter: true},
		{Labels: ls("__name__", "a_total", "instance", "i", "job", "j"), Counter: true},
		{Labels: ls("__name__", "b", "instance", "i", "job", "j")},
		{Labels: ls("__name__", "b", "instance", "k", "job", "j")},
	}
}

func TestLines(t *testing.T) {
	for v, want := range map[wire.Version]string{
		wire.Influx: `a_total,instance=i,job=j,path=/x\ y\,z\="1" value=1 1700000000000000000
a_total,instance=i,job=j value=0.5 1700000000000000000
b,instance=i,job=j value=-2 1700000000000000000
b,instance=k,job=j value=1e+21 1700000000000000000
`,
		wire.Text: `a_total{instance="i",job="j",path="/x y,z=\"1\"",} 1 1700000000000
a_total{instance="i",job="j",} 0.5 1700000000000
b{instance="i",job="j",} -2 1700000000000
b{instance="k",job="j",} 1e+21 1700000000000
`,
		wire.OpenTSDB: `[{"metric":"a_total","tags":{"instance":"i","job":"j","path":"/x y,z=\"1\""},"value":1,"timestamp":1700000000000},` +
			`{"metric":"a_total","tags":{"instance":"i","job":"j"},"value":0.5,"timestamp":1700000000000},` +
			`{"metric":"b","tags":{"instance":"i","job":"j"},"value":-2,"timestamp":1700000000000},` +
			`{"metric":"b","tags":{"instance":"k","job":"j"},"value":1e+21,"timestamp":1700000000000}]`,
		wire.JSONLines: `{"metric":{"__name__":"a_total","instance":"i","job":"j","path":"/x y,z=\"1\""},"values":[1],"timestamps":[1700000000000]}
{"metric":{"__name__":"a_total","instance":"i","job":"j"},"values":[0.5],"timestamps":[1700000000000]}
{"metric":{"__name__":"b","instance":"i","job":"j"},"values":[-2],"timestamps":[1700000000000]}
{"metric":{"__name__":"b","instance":"k","job":"j"},"values":[1e+21],"timestamps":[1700000000000]}
`,
		wire.CSV: `"a_total","i","j","{path=""/x y,z=\""1\""""}",1,1700000000000
"a_total","i","j","{}",0.5,1700000000000
"b","i","j","{}",-2,1700000000000
"b","k","j","{}",1e+21,1700000000000
`,
		wire.Graphite: `a_total;instance=i;job=j;path=/x_y,z="1" 1 1700000000
a_total;instance=i;job=j 0.5 1700000000
b;instance=i;job=j -2 1700000000
b;instance=k;job=j 1e+21 1700000000
`,
	} {
		tmpl, err := wire.New(v, otherSeries())
		require.NoError(t, err)
		require.Equal(t, want, string(tmpl.Append(nil, 1_700_000_000_000, []float64{1, 0.5, -2, 1e21})))
	}
}

func TestOTLP(t *testing.T) {
	tmpl, err := wire.New(wire.OTLP, otherSeries())
	require.NoError(t, err)
	require.Equal(t, 4, tmpl.Len())
	md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(tmpl.Append([]byte("kept"), 1_700_000_000_000, []float64{1, 0.5, -2, 1e21})[4:])
	require.NoError(t, err)
	require.Equal(t, 2, md.ResourceMetrics().Len())
	resource := md.ResourceMetrics().At(0)
	require.Equal(t, map[string]any{"service.name": "j", "service.instance.id": "i"}, resource.Resource().Attributes().AsRaw())
	ms := resource.ScopeMetrics().At(0).Metrics()
	require.Equal(t, 2, ms.Len())
	require.Equal(t, "a_total", ms.At(0).Name())
	sum := ms.At(0).Sum()
	require.True(t, sum.IsMonotonic())
	require.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
	require.Equal(t, 2, sum.DataPoints().Len())
	require.Equal(t, map[string]any{"path": `/x y,z="1"`}, sum.DataPoints().At(0).Attributes().AsRaw())
	require.Equal(t, 0.5, sum.DataPoints().At(1).DoubleValue())
	require.Equal(t, int64(1_700_000_000_000), sum.DataPoints().At(1).Timestamp().AsTime().UnixMilli())
	require.Equal(t, -2.0, ms.At(1).Gauge().DataPoints().At(0).DoubleValue())
	last := md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	require.Equal(t, 1e21, last.DoubleValue())
	require.Equal(t, int64(1_700_000_000_000), last.Timestamp().AsTime().UnixMilli())
}

func TestParse(t *testing.T) {
	for _, name := range []string{"1", "2", "influx", "text", "otlp", "datadog", "opentsdb", "jsonlines", "csv", "graphite"} {
		v, err := wire.Parse(name)
		require.NoError(t, err)
		require.Equal(t, name, v.String())
	}
	_, err := wire.Parse("3")
	require.ErrorContains(t, err, `protocol "3": want 1 or 2`)
}
