package query_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkDeltas measures the rate of a cumulative counter, and that of points of delta
// temporality, over 400 series of one block: at an instant, and over 12 hours at a step of a minute.
//
//	go test ./internal/query -run '^$' -bench Deltas
func BenchmarkDeltas(b *testing.B) {
	day := laketest.Now().Truncate(24 * time.Hour)
	var rows []segment.Row
	for i := range 400 {
		c, d := segment.Row{Labels: laketest.Metric("c", "i", fmt.Sprint(i))}, segment.Row{Labels: laketest.Metric("d", "i", fmt.Sprint(i), "__temporality__", "delta")}
		for n := range int64(24 * 240) {
			at := day.UnixMilli() + n*15_000
			c.Floats = append(c.Floats, segment.Float{ST: day.UnixMilli() - 1, T: at, V: float64(n * int64(i))})
			d.Floats = append(d.Floats, segment.Float{ST: at - 15_000, T: at, V: float64(i)})
		}
		rows = append(rows, c, d)
	}
	l := laketest.New(b, laketest.NewDir(b), query.Settings{MaxStaleness: time.Hour})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	for _, step := range []time.Duration{0, time.Minute} {
		for _, text := range []string{`sum(rate(c[5m]))`, `sum(rate(d[5m]))`} {
			b.Run(fmt.Sprintf("query=%s/step=%s", text, step), func(b *testing.B) {
				ask := func() {
					res := l.Exec(b.Context(), laketest.Query{Text: text, Start: day.Add(8 * time.Hour), End: day.Add(20 * time.Hour), Step: step})
					require.NoError(b, res.Err)
				}
				ask()
				before, n := processorTime(b), 0
				for b.Loop() {
					ask()
					n++
				}
				b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(n), "cpu-ms/op")
			})
		}
	}
}
