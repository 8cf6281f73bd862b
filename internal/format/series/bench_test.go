package series_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
)

// BenchmarkIntern interns new and known label sets.
func BenchmarkIntern(b *testing.B) {
	const n = 20_000
	sets := make([][]series.Label, n)
	for i := range sets {
		sets[i] = []series.Label{
			{Name: "__name__", Value: fmt.Sprintf("metric_%d_total", i%500)},
			{Name: "env", Value: "production"},
			{Name: "instance", Value: fmt.Sprintf("host_%d:9100", i/500)},
			{Name: "job", Value: "node"},
		}
	}
	for _, rounds := range []int{1, 10} {
		b.Run(fmt.Sprintf("rounds=%d", rounds), func(b *testing.B) {
			for b.Loop() {
				table := series.NewTable(0)
				for range rounds {
					for _, l := range sets {
						_, err := table.Intern(l)
						require.NoError(b, err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rounds*n), "ns/set")
		})
	}
}
