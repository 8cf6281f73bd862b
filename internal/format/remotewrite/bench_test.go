package remotewrite_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// BenchmarkDecode decodes messages of known series like node_exporter's, a third of which is 0.
func BenchmarkDecode(b *testing.B) {
	const total, batch = 20_000, 2000
	for _, samples := range []int{1, 10} {
		b.Run(fmt.Sprintf("samples=%d", samples), func(b *testing.B) {
			var msgs [][]byte
			for from := 0; from < total; from += batch {
				var req prompb.WriteRequest
				for i := from; i < from+batch; i++ {
					host := i / 500
					ts := prompb.TimeSeries{Labels: []prompb.Label{
						{Name: "__name__", Value: fmt.Sprintf("node_metric_with_some_name_%d_total", i%500/8)},
						{Name: "cpu", Value: fmt.Sprint(i % 8)},
						{Name: "env", Value: "production"},
						{Name: "host_number", Value: fmt.Sprint(host)},
						{Name: "instance", Value: fmt.Sprintf("host_%d:9100", host)},
						{Name: "job", Value: "node_exporter"},
						{Name: "role", Value: []string{"db", "web", "cache"}[host%3]},
					}}
					if i%3 == 0 {
						ts.Labels = append(ts.Labels[:2], ts.Labels[3:]...)
					}
					for n := range samples {
						ts.Samples = append(ts.Samples, prompb.Sample{Value: float64(i*n) * 1.5 * float64(i%3), Timestamp: 1_700_000_000_000 + int64(n)})
					}
					req.Timeseries = append(req.Timeseries, ts)
				}
				msg, err := req.Marshal()
				require.NoError(b, err)
				msgs = append(msgs, msg)
			}
			g, n := remotewrite.NewGeneration(1), 0
			for b.Loop() {
				const room = 64 << 20
				msg := msgs[n%len(msgs)]
				out, err := remotewrite.Decode(remotewrite.V1, msg, g, remotewritetest.Rules(), remotewrite.NewRoom(len(msg), room, room, nil))
				require.NoError(b, err)
				out.Release()
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch*samples), "ns/sample")
		})
	}
}
