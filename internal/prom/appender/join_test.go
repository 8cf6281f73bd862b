package appender

import (
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
)

func sampleOf(ls labels.Labels, t int64, v float64) Sample {
	return Sample{series: &state{labels: ls}, T: t, V: v}
}

func with(r Rare, s Sample) Sample {
	s.Rare = &r
	return s
}

// TestJoin: joined messages are the message of all transactions.
func TestJoin(t *testing.T) {
	all := []*Transaction{
		{
			Samples:   []Sample{sampleOf(labels.FromStrings("__name__", "a", "x", "1"), 1, 2), with(Rare{Histogram: Histogram{H: tsdbutil.GenerateTestHistogram(3)}}, sampleOf(labels.FromStrings("__name__", "h"), 1, 0))},
			Exemplars: []Exemplar{{0, exemplar.Exemplar{Labels: labels.FromStrings("trace", "b"), Value: 3, Ts: 1}}},
		},
		{
			Samples:   []Sample{with(Rare{ST: 1}, sampleOf(labels.FromStrings("__name__", "b", "x", "1", "y", "new"), 2, 3))},
			Exemplars: []Exemplar{{0, exemplar.Exemplar{Labels: labels.FromStrings("trace", "c"), Value: 3, Ts: 1}}},
			Metadata:  []*Family{{Metadata: segment.Metadata{Metric: "b", Type: "gauge", Help: "Help.", Unit: "seconds"}}},
		},
		{Samples: []Sample{sampleOf(labels.FromStrings("__name__", "a", "x", "1"), 3, 4), with(Rare{Histogram: Histogram{FH: tsdbutil.GenerateTestFloatHistogram(3)}}, sampleOf(labels.FromStrings("__name__", "f"), 1, 0))}},
	}
	var parts [][]byte
	for _, tx := range all {
		part, err := Encode([]*Transaction{tx})
		require.NoError(t, err)
		parts = append(parts, part)
	}
	want, err := Encode(all)
	require.NoError(t, err)
	got, err := Join(parts)
	require.NoError(t, err)
	require.Equal(t, want, got)

	_, err = Join([][]byte{{1}})
	require.ErrorContains(t, err, "join message 1 of 1")
	wrong, err := (&writev2.Request{Symbols: []string{""}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{0, 1}}}}).Marshal()
	require.NoError(t, err)
	_, err = Join([][]byte{parts[0], wrong})
	require.ErrorContains(t, err, "join message 2 of 2: there is no symbol 1 of 1")
}
