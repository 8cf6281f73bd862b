package appender

import (
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// BenchmarkScrape appends the scrapes of 100 targets of 500 series, and collects them into a batch,
// as a flush does.
func BenchmarkScrape(b *testing.B) {
	const targets, series = 100, 500
	var txs []*Transaction
	a := New(func(tx *Transaction) error { txs = append(txs, tx); return nil })
	g := remotewrite.NewGeneration(1)
	sets, refs := make([]labels.Labels, targets*series), make([]storage.SeriesRef, targets*series)
	for i := range sets {
		sets[i] = labels.FromStrings("__name__", fmt.Sprintf("node_metric_%d_total", i%series), "instance", fmt.Sprintf("host-%d.example:9100", i/series), "job", "node_exporter")
	}
	round := func(t int64) {
		txs = txs[:0]
		for target := range targets {
			app := a.AppenderV2(b.Context())
			for i := target * series; i < (target+1)*series; i++ {
				ref, err := app.Append(refs[i], sets[i], 0, t, float64(i), nil, nil, storage.AOptions{})
				if err != nil {
					b.Fatal(err)
				}
				refs[i] = ref
			}
			require.NoError(b, app.Commit())
		}
		batch, err := remotewrite.Collect(g, remotewritetest.Rules(), remotewrite.NewRoom(1<<30, 1<<30, math.MaxInt64, nil), Collect(txs))
		require.NoError(b, err)
		require.Len(b, batch.Floats, targets*series)
		batch.Release()
		for _, tx := range txs {
			tx.Release()
		}
	}
	round(1)
	t := int64(1)
	b.ReportAllocs()
	for b.Loop() {
		t++
		round(t)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/targets/series, "ns/sample")
}
