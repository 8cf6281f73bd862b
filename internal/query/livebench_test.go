package query_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkLiveSegments measures what a rule asks: an instant query of 25 of 2,000 series over
// segments that are not merged yet, one second and one sample of each series each.
//
//	go test ./internal/query -run '^$' -bench LiveSegments
func BenchmarkLiveSegments(b *testing.B) {
	for _, segments := range []int{10, 100, 400} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			l := laketest.New(b, laketest.NewDir(b), query.Settings{MaxStaleness: time.Hour})
			start := laketest.Now().Truncate(2 * time.Hour)
			var rows []segment.Row
			for i := range 80 {
				for k := range 25 {
					rows = append(rows, segment.Row{Labels: laketest.Metric("requests_total", "instance", fmt.Sprintf("host-%02d:9100", i), "mode", fmt.Sprint('a'+k))})
				}
			}
			slices.SortFunc(rows, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
			for n := range segments {
				for i := range rows {
					rows[i].Floats = []segment.Float{{T: start.UnixMilli() + 1000*int64(n), V: float64(n * i)}}
				}
				l.WriteSegment(tenant.Default, key.WindowOf(start.UnixMilli()), rows, nil)
			}
			at := start.Add(time.Duration(segments) * time.Second)
			ask := func(i int) {
				res := l.Exec(b.Context(), laketest.Query{Text: fmt.Sprintf(`sum(rate(requests_total{instance="host-%02d:9100"}[%ds]))`, i%10, segments), Start: at, End: at})
				require.NoError(b, res.Err)
			}
			for i := range 10 {
				ask(i)
			}
			before, i := processorTime(b), 0
			for b.Loop() {
				ask(i)
				i++
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(i), "cpu-ms/op")
		})
	}
}
