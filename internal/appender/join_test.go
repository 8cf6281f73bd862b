package appender

import (
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/segment"
)

// TestJoin: joined messages are the message of all transactions.
func TestJoin(t *testing.T) {
	all := []*Transaction{
		{
			Samples:   []Sample{{Labels: labels.FromStrings("__name__", "a", "x", "1"), T: 1, V: 2}, {Labels: labels.FromStrings("__name__", "h"), T: 1, H: tsdbutil.GenerateTestHistogram(3)}},
			Exemplars: []Exemplar{{0, exemplar.Exemplar{Labels: labels.FromStrings("trace", "b"), Value: 3, Ts: 1}}},
		},
		{
			Samples:   []Sample{{Labels: labels.FromStrings("__name__", "b", "x", "1", "y", "new"), ST: 1, T: 2, V: 3}},
			Exemplars: []Exemplar{{0, exemplar.Exemplar{Labels: labels.FromStrings("trace", "c"), Value: 3, Ts: 1}}},
			Metadata:  []*Family{{Metadata: segment.Metadata{Metric: "b", Type: "gauge", Help: "Help.", Unit: "seconds"}}},
		},
		{Samples: []Sample{{Labels: labels.FromStrings("__name__", "a", "x", "1"), T: 3, V: 4}, {Labels: labels.FromStrings("__name__", "f"), T: 1, FH: tsdbutil.GenerateTestFloatHistogram(3)}}},
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
