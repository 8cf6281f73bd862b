// Package remotewritetest makes remote-write messages for tests, and prints what should be stored
// of them.
package remotewritetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// Item is a series as a sender sees it, in either protocol version.
type Item struct {
	Lset      []string // names and values in the order of sending
	Floats    []segment.Float
	Hists     []segment.Hist
	Exemplars []exemplar.Exemplar
	Meta      segment.Metadata
}

// Gauge is a series of job "test" with float samples.
func Gauge(name string, floats ...segment.Float) Item {
	return Item{Lset: []string{"__name__", name, "job", "test"}, Floats: floats}
}

// At is a float sample without a start timestamp.
func At(t int64, v float64) segment.Float { return segment.Float{T: t, V: v} }

// EncodeV1 makes a prometheus.WriteRequest. 1.0 has no start timestamps.
func EncodeV1(items []Item) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for _, it := range items {
		if it.Meta.Metric != "" {
			req.Metadata = append(req.Metadata, prompb.MetricMetadata{
				MetricFamilyName: it.Meta.Metric, Help: it.Meta.Help, Unit: it.Meta.Unit, Type: prompb.FromMetadataType(model.MetricType(it.Meta.Type)),
			})
		}
		if it.Lset == nil {
			continue
		}
		var ts prompb.TimeSeries
		for i := 0; i < len(it.Lset); i += 2 {
			ts.Labels = append(ts.Labels, prompb.Label{Name: it.Lset[i], Value: it.Lset[i+1]})
		}
		for _, f := range it.Floats {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: f.T, Value: f.V})
		}
		for _, h := range it.Hists {
			if h.FH != nil {
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(h.T, h.FH))
			} else {
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(h.T, h.H))
			}
		}
		for _, e := range it.Exemplars {
			ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Labels: prompb.FromLabels(e.Labels, nil), Value: e.Value, Timestamp: e.Ts})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	return req
}

// EncodeV2 makes an io.prometheus.write.v2.Request.
func EncodeV2(items []Item) *writev2.Request {
	req := &writev2.Request{}
	symbols := writev2.NewSymbolTable()
	for _, it := range items {
		var ts writev2.TimeSeries
		for _, s := range it.Lset {
			ts.LabelsRefs = append(ts.LabelsRefs, symbols.Symbolize(s))
		}
		for _, f := range it.Floats {
			ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: f.T, Value: f.V, StartTimestamp: f.ST})
		}
		for _, h := range it.Hists {
			if h.FH != nil {
				ts.Histograms = append(ts.Histograms, writev2.FromFloatHistogram(h.ST, h.T, h.FH))
			} else {
				ts.Histograms = append(ts.Histograms, writev2.FromIntHistogram(h.ST, h.T, h.H))
			}
		}
		for _, e := range it.Exemplars {
			ts.Exemplars = append(ts.Exemplars, writev2.Exemplar{LabelsRefs: symbols.SymbolizeLabels(e.Labels, nil), Value: e.Value, Timestamp: e.Ts})
		}
		ts.Metadata = writev2.Metadata{
			Type: writev2.FromMetadataType(model.MetricType(it.Meta.Type)), HelpRef: symbols.Symbolize(it.Meta.Help), UnitRef: symbols.Symbolize(it.Meta.Unit),
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	req.Symbols = symbols.Symbols()
	return req
}

// Body is the body that carries a message.
func Body(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	return snappy.Encode(nil, marshal(t, m))
}

// Want is what a store should hold of items that were sent in a protocol version.
func Want(t testing.TB, version remotewrite.Protocol, items []Item) map[string]Content {
	t.Helper()
	out := map[string]Content{}
	for _, it := range items {
		name := LsetText(it.Lset)
		c := out[name]
		for _, f := range it.Floats {
			if version == remotewrite.V1 {
				f.ST = 0
			}
			c.Floats = append(c.Floats, FloatText(f))
		}
		for _, h := range it.Hists {
			if version == remotewrite.V1 {
				h.ST = 0
			}
			c.Hists = append(c.Hists, HistText(t, h))
		}
		for _, e := range it.Exemplars {
			c.Exemplars = append(c.Exemplars, ExemplarText(e))
		}
		slices.Sort(c.Exemplars)
		out[name] = c
	}
	return out
}

// LsetText prints a label set as it is stored: without empty values.
func LsetText(lset []string) string {
	b := labels.NewBuilder(labels.EmptyLabels())
	for i := 0; i < len(lset); i += 2 {
		b.Set(lset[i], lset[i+1])
	}
	return b.Labels().String()
}

// ExemplarText prints an exemplar.
func ExemplarText(e exemplar.Exemplar) string {
	return fmt.Sprintf("%d %#x %s", e.Ts, math.Float64bits(e.Value), e.Labels)
}

// ManyLabels repeats a label until there are n.
func ManyLabels(n int) []string {
	out := []string{"__name__", "m"}
	for i := range n - 1 {
		out = append(out, fmt.Sprintf("l%06d", i), "v")
	}
	return out
}

// Long is a text of n bytes.
func Long(n int) string { return strings.Repeat("x", n) }

// FloatText prints a float sample.
func FloatText(f segment.Float) string {
	return fmt.Sprintf("%d %#x st=%d", f.T, math.Float64bits(f.V), f.ST)
}

// HistText prints a native histogram sample.
func HistText(t testing.TB, h segment.Hist) string {
	b, err := segment.EncodeHist(h)
	require.NoError(t, err)
	return fmt.Sprintf("%d %x", h.T, b)
}

// Everything is a request with all that the protocols can carry.
func Everything() []Item {
	stale := math.Float64frombits(value.StaleNaN)
	ex := func(t int64, v float64, l ...string) exemplar.Exemplar {
		return exemplar.Exemplar{Ts: t, HasTs: true, Value: v, Labels: labels.FromStrings(l...)}
	}
	return []Item{
		{Lset: []string{"__name__", "up", "instance", "a:9100", "job", "node"}, Floats: []segment.Float{At(SomeTime, 1), At(SomeTime+1000, 0.1), At(SomeTime+2000, stale)}},
		{Lset: []string{"__name__", "up", "instance", "b:9100", "job", "node"}, Floats: []segment.Float{At(SomeTime, math.Inf(1)), At(SomeTime+1, math.Float64frombits(0x7ff8000000000001))}},
		{
			Lset: []string{"Zone", "eu", "__name__", "requests.total", "empty", "", "ünï", "çödé"}, Floats: []segment.Float{{T: SomeTime, V: 7, ST: SomeTime - 60_000}, {T: SomeTime + 1, V: 8}},
			Meta: segment.Metadata{Metric: "requests.total", Type: "counter", Help: "Requests.", Unit: "requests"}, Exemplars: []exemplar.Exemplar{ex(SomeTime-5, 1, "trace_id", `a"b`)},
		},
		{
			Lset: []string{"__name__", "rpc_seconds", "job", "api"},
			Hists: []segment.Hist{
				{T: SomeTime, H: tsdbutil.GenerateTestHistogram(3), ST: SomeTime - 1},
				{T: SomeTime + 1, FH: tsdbutil.GenerateTestFloatHistogram(4)},
				{T: SomeTime + 2, H: tsdbutil.GenerateTestCustomBucketsHistogram(5)},
				{T: SomeTime + 3, FH: tsdbutil.GenerateTestCustomBucketsFloatHistogram(6)},
				{T: SomeTime + 4, H: &histogram.Histogram{Sum: stale}},
				{T: SomeTime + 5, FH: &histogram.FloatHistogram{Sum: stale}},
				{T: SomeTime + 6, H: tsdbutil.GenerateTestGaugeHistogram(7)},
			},
			Exemplars: []exemplar.Exemplar{ex(SomeTime, 0.25, "trace_id", "1"), ex(SomeTime, 0.5, "trace_id", "2")},
			Meta:      segment.Metadata{Metric: "rpc_seconds", Type: "histogram", Help: "<ünï> & co."},
		},
		{Lset: []string{"__name__", "mixed"}, Floats: []segment.Float{At(SomeTime, 1)}, Hists: []segment.Hist{{T: SomeTime, H: tsdbutil.GenerateTestHistogram(1)}}},
	}
}

// RandomItems makes a request: mostly valid, with the odd offender.
func RandomItems(rng *rand.Rand) []Item {
	names := []string{"A", "__name__", "a", "b", "instance", "job", "ü"}
	values := []string{"", "0", "1", "node", "çödé", Long(50), "\xff"}
	var out []Item
	for range rng.IntN(12) {
		var it Item
		for _, n := range names {
			if n == "__name__" || rng.IntN(3) == 0 {
				it.Lset = append(it.Lset, n, values[min(rng.IntN(40), rng.IntN(len(values)))])
			}
		}
		it.Lset = append(it.Lset, "zz", fmt.Sprint(rng.IntN(4)))
		for i := range it.Lset {
			if i%2 == 1 && it.Lset[i-1] == "__name__" {
				it.Lset[i] = fmt.Sprintf("m%d", rng.IntN(5))
			}
		}
		for range rng.IntN(4) {
			f := segment.Float{T: SomeTime - rng.Int64N(10_000_000), V: math.Float64frombits(rng.Uint64())}
			if rng.IntN(4) == 0 {
				f.ST = f.T - rng.Int64N(1000)
			}
			it.Floats = append(it.Floats, f)
		}
		for range rng.IntN(3) {
			h := segment.Hist{T: SomeTime - rng.Int64N(10_000_000), ST: rng.Int64N(2) * SomeTime}
			switch n := rng.Int64N(9); rng.IntN(5) {
			case 0:
				h.H = tsdbutil.GenerateTestHistogram(n)
			case 1:
				h.FH = tsdbutil.GenerateTestFloatHistogram(n)
			case 2:
				h.H = tsdbutil.GenerateTestCustomBucketsHistogram(n)
			case 3:
				h.FH = tsdbutil.GenerateTestCustomBucketsFloatHistogram(n)
			case 4: // a resolution that is lowered
				h.H = &histogram.Histogram{Schema: 9 + int32(n), Count: 3, PositiveSpans: []histogram.Span{{Offset: int32(n), Length: 2}}, PositiveBuckets: []int64{1, 1}}
			}
			it.Hists = append(it.Hists, h)
		}
		if rng.IntN(3) == 0 {
			it.Exemplars = append(it.Exemplars, exemplar.Exemplar{Ts: SomeTime - 5, Value: 1, Labels: labels.FromStrings("trace_id", fmt.Sprint(rng.Uint64()))})
		}
		if rng.IntN(3) == 0 {
			it.Meta = segment.Metadata{Metric: "m1", Type: "counter", Help: "help"}
		}
		out = append(out, it)
	}
	return out
}

// FuzzItems are series of every kind.
func FuzzItems() []Item {
	full := Gauge("full", At(SomeTime, 1), At(SomeTime+1, math.NaN()))
	full.Hists = []segment.Hist{{T: SomeTime, H: tsdbutil.GenerateTestHistogram(1)}, {T: SomeTime + 1, FH: tsdbutil.GenerateTestFloatHistogram(2)}}
	full.Meta = segment.Metadata{Metric: "full", Type: "counter", Help: "help", Unit: "s"}
	return []Item{full, Gauge("a", At(SomeTime, 0)), Gauge("b", At(0, -1)), {Lset: []string{"b", "1", "a", "2"}, Floats: []segment.Float{At(1, 1)}}}
}

// Message encodes items.
func Message(t testing.TB, version remotewrite.Protocol, items []Item) []byte {
	if version == remotewrite.V2 {
		return marshal(t, EncodeV2(items))
	}
	return marshal(t, EncodeV1(items))
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Marshal()
	require.NoError(t, err)
	return b
}

// SomeTime is the time of most samples, ms, in the window 20231114T2200Z.
const SomeTime int64 = 1_700_000_000_000

// Content is what a store holds of one series; of equal times the last written counts. Values are
// compared by their bits.
type Content struct {
	Floats    []string // time, value, start
	Hists     []string
	Exemplars []string
}
