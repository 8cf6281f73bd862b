package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/segment"
)

// item is a series as a sender sees it, in either protocol version.
type item struct {
	lset      []string // names and values in the order of sending
	floats    []segment.Float
	hists     []segment.Hist
	exemplars []exemplar.Exemplar
	meta      segment.Metadata
}

// gauge is a series with float samples.
func gauge(name string, floats ...segment.Float) item {
	return item{lset: []string{"__name__", name, "job", "test"}, floats: floats}
}

func at(t int64, v float64) segment.Float { return segment.Float{T: t, V: v} }

// encodeV1 makes a prometheus.WriteRequest. 1.0 has no start timestamps.
func encodeV1(items []item) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for _, it := range items {
		if it.meta.Metric != "" {
			req.Metadata = append(req.Metadata, prompb.MetricMetadata{
				MetricFamilyName: it.meta.Metric, Help: it.meta.Help, Unit: it.meta.Unit, Type: prompb.FromMetadataType(model.MetricType(it.meta.Type)),
			})
		}
		if it.lset == nil {
			continue
		}
		var ts prompb.TimeSeries
		for i := 0; i < len(it.lset); i += 2 {
			ts.Labels = append(ts.Labels, prompb.Label{Name: it.lset[i], Value: it.lset[i+1]})
		}
		for _, f := range it.floats {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: f.T, Value: f.V})
		}
		for _, h := range it.hists {
			if h.FH != nil {
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(h.T, h.FH))
			} else {
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(h.T, h.H))
			}
		}
		for _, e := range it.exemplars {
			ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Labels: prompb.FromLabels(e.Labels, nil), Value: e.Value, Timestamp: e.Ts})
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	return req
}

// encodeV2 makes an io.prometheus.write.v2.Request.
func encodeV2(items []item) *writev2.Request {
	req := &writev2.Request{}
	symbols := writev2.NewSymbolTable()
	for _, it := range items {
		var ts writev2.TimeSeries
		for _, s := range it.lset {
			ts.LabelsRefs = append(ts.LabelsRefs, symbols.Symbolize(s))
		}
		for _, f := range it.floats {
			ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: f.T, Value: f.V, StartTimestamp: f.ST})
		}
		for _, h := range it.hists {
			if h.FH != nil {
				ts.Histograms = append(ts.Histograms, writev2.FromFloatHistogram(h.ST, h.T, h.FH))
			} else {
				ts.Histograms = append(ts.Histograms, writev2.FromIntHistogram(h.ST, h.T, h.H))
			}
		}
		for _, e := range it.exemplars {
			ts.Exemplars = append(ts.Exemplars, writev2.Exemplar{LabelsRefs: symbols.SymbolizeLabels(e.Labels, nil), Value: e.Value, Timestamp: e.Ts})
		}
		ts.Metadata = writev2.Metadata{
			Type: writev2.FromMetadataType(model.MetricType(it.meta.Type)), HelpRef: symbols.Symbolize(it.meta.Help), UnitRef: symbols.Symbolize(it.meta.Unit),
		}
		req.Timeseries = append(req.Timeseries, ts)
	}
	req.Symbols = symbols.Symbols()
	return req
}

// packed is the body that carries a message.
func packed(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := m.Marshal()
	require.NoError(t, err)
	return snappy.Encode(nil, raw)
}

// want is what a store shall hold of items that were sent in a protocol version.
func want(t *testing.T, version protocol, items []item) map[string]content {
	t.Helper()
	out := map[string]content{}
	for _, it := range items {
		name := lsetText(it.lset)
		c := out[name]
		for _, f := range it.floats {
			if version == protocolV1 {
				f.ST = 0
			}
			c.Floats = append(c.Floats, floatText(f))
		}
		for _, h := range it.hists {
			if version == protocolV1 {
				h.ST = 0
			}
			c.Hists = append(c.Hists, histText(t, h))
		}
		for _, e := range it.exemplars {
			c.Exemplars = append(c.Exemplars, exemplarText(e))
		}
		slices.Sort(c.Exemplars)
		out[name] = c
	}
	return out
}

// lsetText prints a label set as it is stored: without empty values.
func lsetText(lset []string) string {
	b := labels.NewBuilder(labels.EmptyLabels())
	for i := 0; i < len(lset); i += 2 {
		b.Set(lset[i], lset[i+1])
	}
	return b.Labels().String()
}

func exemplarText(e exemplar.Exemplar) string {
	return fmt.Sprintf("%d %#x %s", e.Ts, math.Float64bits(e.Value), e.Labels)
}

// many repeats a label until there are n.
func many(n int) []string {
	out := []string{"__name__", "m"}
	for i := range n - 1 {
		out = append(out, fmt.Sprintf("l%06d", i), "v")
	}
	return out
}

func long(n int) string { return strings.Repeat("x", n) }
