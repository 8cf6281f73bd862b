package faults

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"
)

// The histograms of all protocols have as many observations as the value says, and all of them were
// 1, which is in the bucket (0.5, 1] of schema 0.

func encodeHistograms(s string, points []sample) []byte {
	series := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "hist_m"}, {Name: "s", Value: s}}}
	for _, p := range points {
		series.Histograms = append(series.Histograms, prompb.Histogram{
			Timestamp: p.ts, Count: &prompb.Histogram_CountInt{CountInt: uint64(p.v)}, Sum: float64(p.v),
			PositiveSpans: []prompb.BucketSpan{{Length: 1}}, PositiveDeltas: []int64{int64(p.v)},
		})
	}
	return writeRequest(series)
}

func encodeExponential(s string, points []sample) []byte {
	return exportRequest("otlp_hist_m", func(m pmetric.Metric) {
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, p := range points {
			x := h.DataPoints().AppendEmpty()
			x.Attributes().PutStr("s", s)
			x.SetTimestamp(nanoseconds(p.ts))
			x.SetCount(uint64(p.v))
			x.SetSum(float64(p.v))
			x.Positive().SetOffset(-1)
			x.Positive().BucketCounts().FromRaw([]uint64{uint64(p.v)})
		}
	})
}

// keyOfOne is the bin of the agent's sketches that has 1.
const keyOfOne = 1338

// encodeSketches writes a SketchPayload.
func encodeSketches(s string, points []sample) []byte {
	sketch := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "datadog_sketch_m")
	sketch = protowire.AppendString(protowire.AppendTag(sketch, 4, protowire.BytesType), "s:"+s)
	for _, p := range points {
		d := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(p.ts/1000))
		d = protowire.AppendVarint(protowire.AppendTag(d, 2, protowire.VarintType), uint64(p.v))
		for field, v := range []float64{1, 1, 1, float64(p.v)} { // minimum, maximum, average, sum
			d = appendDouble(d, protowire.Number(field+3), v)
		}
		d = protowire.AppendBytes(protowire.AppendTag(d, 7, protowire.BytesType), protowire.AppendVarint(nil, protowire.EncodeZigZag(keyOfOne)))
		d = protowire.AppendBytes(protowire.AppendTag(d, 8, protowire.BytesType), protowire.AppendVarint(nil, uint64(p.v)))
		sketch = protowire.AppendBytes(protowire.AppendTag(sketch, 7, protowire.BytesType), d)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), sketch)
}

// histogram is one of an answer of the query API.
type histogram struct {
	Count, Sum string
	Buckets    [][4]any // rule of the bounds, lower, upper, count
}

// stamped is a histogram with its time, in seconds.
type stamped struct {
	seconds float64
	histogram
}

// UnmarshalJSON reads a pair of both.
func (s *stamped) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[2]any{&s.seconds, &s.histogram})
}

// value returns the number of observations. It is an error if any part of the histogram says
// something else.
func (h *histogram) value() (value, error) {
	wrong := fmt.Errorf("read answer: a histogram that nobody wrote: %+v", *h)
	count, err := strconv.ParseFloat(h.Count, 64)
	if err != nil || h.Sum != h.Count || len(h.Buckets) != 1 || h.Buckets[0][3] != h.Count {
		return 0, wrong
	}
	lower, err := strconv.ParseFloat(fmt.Sprint(h.Buckets[0][1]), 64)
	if err != nil || lower >= 1 {
		return 0, wrong
	}
	upper, err := strconv.ParseFloat(fmt.Sprint(h.Buckets[0][2]), 64)
	if err != nil || upper < 1 {
		return 0, wrong
	}
	return value(count), nil
}
