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
	"github.com/promlake/promlake/internal/store/replica"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkReplicas measures a query of 12 hours over 400 stored series of one block: 400 series,
// or 200 of which two replicas have written each. dedup=false shows the 400 replicas.
//
//	go test ./internal/query -run '^$' -bench Replicas
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 2} {
		day := laketest.Now().Truncate(24 * time.Hour)
		var rows []segment.Row
		for i := range 400 / replicas {
			for k := range replicas {
				lset := laketest.Metric("m", "cluster", "x", "i", fmt.Sprint(i))
				if replicas > 1 {
					lset = laketest.Metric("m", "__replica__", fmt.Sprint(k), "cluster", "x", "i", fmt.Sprint(i))
				}
				r := segment.Row{Labels: lset}
				for n := range 24 * 240 {
					r.Floats = append(r.Floats, segment.Float{T: day.UnixMilli() + int64(n)*15_000 + int64(k)*7000, V: float64(n * i)})
				}
				rows = append(rows, r)
			}
		}
		store := laketest.NewDir(b)
		laketest.New(b, store, query.Settings{}).WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
		for _, dedup := range []bool{true, false} {
			for _, text := range []string{`sum(rate(m[5m]))`, `sum(m)`, `max_over_time(m{i="7"}[5m])`} {
				b.Run(fmt.Sprintf("replicas=%d/dedup=%v/query=%s", replicas, dedup, text), func(b *testing.B) {
					s := query.Settings{HA: replica.Settings{Dedup: dedup}, MaxStaleness: time.Hour}
					l := laketest.New(b, store, s)
					ask := func() {
						res := l.Exec(b.Context(), laketest.Query{Text: text, Start: day.Add(8 * time.Hour), End: day.Add(20 * time.Hour), Step: time.Minute})
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
}
