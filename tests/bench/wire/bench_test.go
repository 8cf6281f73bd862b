package wire_test

import (
	"fmt"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

// BenchmarkBody measures the generator's work for one request of 2,000 golden samples, stage by
// stage.
func BenchmarkBody(b *testing.B) {
	c, err := capture.Open("")
	require.NoError(b, err)
	f, err := fleet.New(c, 4)
	require.NoError(b, err)
	series := make([]wire.Series, 2000)
	for i := range series {
		series[i] = wire.Series{Labels: f.Labels(i), Counter: f.Counter(i)}
	}
	values := make([]float64, len(series))
	for _, v := range []wire.Version{wire.V1, wire.V2} {
		tmpl, err := wire.New(v, series)
		require.NoError(b, err)
		f.Values(values, 0, 0, someTime)
		body := tmpl.Append(nil, someTime, values)
		out := make([]byte, snappy.MaxEncodedLen(len(body)))
		perSample := func(b *testing.B, bytes int) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(series)), "ns/sample")
			b.ReportMetric(float64(bytes)/float64(len(series)), "B/sample")
		}
		b.Run(fmt.Sprintf("stage=values/protocol=%d", v), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				f.Values(values, 0, i, someTime)
			}
			perSample(b, 8*len(series))
		})
		b.Run(fmt.Sprintf("stage=append/protocol=%d", v), func(b *testing.B) {
			for b.Loop() {
				body = tmpl.Append(body[:0], someTime, values)
			}
			perSample(b, len(body))
		})
		b.Run(fmt.Sprintf("stage=golang-snappy/protocol=%d", v), func(b *testing.B) {
			var n int
			for b.Loop() {
				n = len(snappy.Encode(out, body))
			}
			perSample(b, n)
		})
		b.Run(fmt.Sprintf("stage=s2-snappy/protocol=%d", v), func(b *testing.B) {
			var n int
			for b.Loop() {
				n = len(s2.EncodeSnappy(out, body))
			}
			perSample(b, n)
		})
	}
}
