package sql

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkColdSQL runs statements over 8.6 million samples of 200 series, in blocks of 30 days, in
// a new stage with an empty cache. A request to the store takes 30 ms. It reports the requests, the
// bytes, and the rounds: how many requests were made one after another.
func BenchmarkColdSQL(b *testing.B) {
	dir := laketest.NewDir(b)
	writeMonth(b, dir, 200)
	for _, tc := range flatStatements {
		b.Run("statement="+strings.ReplaceAll(tc.name, " ", "-"), func(b *testing.B) {
			best, requests, rounds, bytes := time.Hour, 0, math.MaxInt, int64(0)
			for b.Loop() {
				store := laketest.NewDistant(dir, 30*time.Millisecond)
				l := laketest.New(b, store, query.Settings{CacheDir: b.TempDir()})
				begun := time.Now()
				require.NoError(b, l.SQL(b.Context(), query.Statement{Text: tc.ours, Format: "arrow"}, dropped{io.Discard}))
				best = min(best, time.Since(begun))
				require.NoError(b, l.Close())
				rounds, requests, bytes = min(rounds, store.Rounds()), len(store.Requests), 0
				for _, n := range store.Bytes {
					bytes += n
				}
			}
			b.ReportMetric(best.Seconds()*1000, "best-ms")
			b.ReportMetric(float64(requests), "requests")
			b.ReportMetric(float64(rounds), "rounds")
			b.ReportMetric(float64(bytes)/1e6, "MB")
		})
	}
}
