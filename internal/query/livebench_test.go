package query_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

// BenchmarkLiveSegments measures what a rule asks: an instant query of 25 of 2,000 series over
// segments that are not merged yet, one second and one sample of each series each.
//
//	go test ./internal/query -run '^$' -bench LiveSegments
func BenchmarkLiveSegments(b *testing.B) {
	for _, segments := range []int{1, 100, 400} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			l := newLake(b, newDirStore(b), query.Settings{MaxStaleness: time.Hour})
			start := testNow().Truncate(2 * time.Hour)
			var rows []segment.Row
			for i := range 80 {
				for k := range 25 {
					rows = append(rows, segment.Row{Labels: metric("requests_total", "instance", fmt.Sprintf("host-%02d:9100", i), "mode", fmt.Sprint('a'+k))})
				}
			}
			samples := 400 / segments
			for n := range segments {
				for i := range rows {
					rows[i].Floats = nil
					for k := range samples {
						at := n*samples + k
						rows[i].Floats = append(rows[i].Floats, segment.Float{T: start.UnixMilli() + 1000*int64(at), V: float64(at * i)})
					}
				}
				l.write(tenant.Default, rows)
			}
			at := start.Add(400 * time.Second)
			ask := func(i int) {
				res := l.exec(b.Context(), asked{text: fmt.Sprintf(`sum(rate(requests_total{instance="host-%02d:9100"}[400s]))`, i%10), start: at, end: at})
				require.NoError(b, res.Err)
			}
			for i := range 10 {
				ask(i)
			}
			i := 0
			for b.Loop() {
				ask(i)
				i++
			}
		})
	}
}
