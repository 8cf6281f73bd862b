package wire_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/wire"
)

const someTime = 1_795_220_058_000 // ms

func someSeries() []wire.Series {
	return []wire.Series{
		{Labels: labels.FromStrings("__name__", "up", "instance", "host_0:9100", "job", "node_exporter")},
		{Labels: labels.FromStrings("__name__", "hits_total", "instance", "host_0:9100", "path", "/ä"), Counter: true},
		{Labels: labels.FromStrings("__name__", "hits_total", "instance", "host_1:9100", "path", "/ä"), Counter: true},
	}
}

// wantV1 and wantV2 build the same request with upstream's types.
func wantV1(series []wire.Series, ts int64, values []float64) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for i, s := range series {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  prompb.FromLabels(s.Labels, nil),
			Samples: []prompb.Sample{{Value: values[i], Timestamp: ts}},
		})
	}
	return req
}

func wantV2(series []wire.Series, ts int64, values []float64) *writev2.Request {
	req, table := &writev2.Request{}, writev2.NewSymbolTable()
	for i, s := range series {
		typ := writev2.Metadata_METRIC_TYPE_GAUGE
		if s.Counter {
			typ = writev2.Metadata_METRIC_TYPE_COUNTER
		}
		req.Timeseries = append(req.Timeseries, writev2.TimeSeries{
			LabelsRefs: table.SymbolizeLabels(s.Labels, nil),
			Samples:    []writev2.Sample{{Value: values[i], Timestamp: ts}},
			Metadata:   writev2.Metadata{Type: typ},
		})
	}
	req.Symbols = table.Symbols()
	return req
}

func TestBodiesEqualUpstreams(t *testing.T) {
	many := make([]wire.Series, 300) // more than 127 symbols: references of two bytes
	for i := range many {
		many[i].Labels = labels.FromStrings("__name__", fmt.Sprintf("metric_%d", i), "number", fmt.Sprint(i))
	}
	for _, tc := range []struct {
		name   string
		series []wire.Series
		ts     int64
		value  func(i int) float64
	}{
		{"three", someSeries(), someTime, func(i int) float64 { return float64(i) + 0.5 }},
		{"zeros are left out", someSeries(), someTime, func(int) float64 { return 0 }},
		{"time zero", someSeries(), 0, func(int) float64 { return 1 }},
		{"negative time", someSeries(), -1, func(int) float64 { return math.Inf(-1) }},
		{"no series", nil, someTime, nil},
		{"no labels", []wire.Series{{}}, someTime, func(int) float64 { return 1 }},
		{"many", many, someTime, func(i int) float64 { return float64(i % 7) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values := make([]float64, len(tc.series))
			for i := range values {
				values[i] = tc.value(i)
			}
			want1, err := wantV1(tc.series, tc.ts, values).Marshal()
			require.NoError(t, err)
			want2, err := wantV2(tc.series, tc.ts, values).Marshal()
			require.NoError(t, err)
			for v, want := range map[wire.Version][]byte{wire.V1: want1, wire.V2: want2} {
				tmpl, err := wire.New(v, tc.series)
				require.NoError(t, err)
				require.Equal(t, len(tc.series), tmpl.Len())
				got := tmpl.Append([]byte("kept"), tc.ts, values)
				require.Equal(t, "kept"+string(want), string(got), "version %d", v)
			}
		})
	}
}

func TestDecodedByUpstream(t *testing.T) {
	series := someSeries()
	values := []float64{math.NaN(), math.Copysign(0, -1), 12.233999999999998}

	tmpl, err := wire.New(wire.V1, series)
	require.NoError(t, err)
	var req1 prompb.WriteRequest
	require.NoError(t, req1.Unmarshal(tmpl.Append(nil, someTime, values)))
	require.Len(t, req1.Timeseries, len(series))
	b := labels.NewScratchBuilder(0)
	for i, ts := range req1.Timeseries {
		require.Equal(t, series[i].Labels, ts.ToLabels(&b, nil))
		require.Len(t, ts.Samples, 1)
		require.Equal(t, int64(someTime), ts.Samples[0].Timestamp)
		require.Equal(t, math.Float64bits(values[i]), math.Float64bits(ts.Samples[0].Value))
	}

	tmpl, err = wire.New(wire.V2, series)
	require.NoError(t, err)
	var req2 writev2.Request
	require.NoError(t, req2.Unmarshal(tmpl.Append(nil, someTime, values)))
	require.Equal(t, []string{"", "__name__", "up", "instance", "host_0:9100", "job", "node_exporter", "hits_total", "path", "/ä", "host_1:9100"}, req2.Symbols)
	for i, ts := range req2.Timeseries {
		got, err := ts.ToLabels(&b, req2.Symbols)
		require.NoError(t, err)
		require.Equal(t, series[i].Labels, got)
		require.Equal(t, math.Float64bits(values[i]), math.Float64bits(ts.Samples[0].Value))
	}
}

func TestUnknownVersion(t *testing.T) {
	_, err := wire.New(11, nil)
	require.EqualError(t, err, "protocol 11 is not known")
}

func TestWrongNumberOfValues(t *testing.T) {
	tmpl, err := wire.New(wire.V1, someSeries())
	require.NoError(t, err)
	require.Panics(t, func() { tmpl.Append(nil, 0, []float64{1}) })
}
