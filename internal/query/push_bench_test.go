package query_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkPushed evaluates queries over 8 hours of samples of one 24h block, 15 s apart, at a step
// of one minute.
func BenchmarkPushed(b *testing.B) {
	const perSeries, scrape, steps = 1920, 15_000, 480
	for _, series := range []int{100, 1000, 10_000} {
		l := laketest.New(b, laketest.NewDir(b), query.Settings{})
		rng := rand.New(rand.NewPCG(1, 2))
		var rows []segment.Row
		for i := range series {
			r := segment.Row{Labels: laketest.Metric("m", "g", fmt.Sprint(i%50), "instance", fmt.Sprintf("host-%d:9100", i), "job", "node", "env", "production")}
			v := 0
			for j := range perSeries {
				v += rng.IntN(1000)
				r.Floats = append(r.Floats, segment.Float{T: int64(j) * scrape, V: float64(v) / 100})
			}
			rows = append(rows, r)
		}
		l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
		rows = nil
		for _, text := range []string{`sum by (g) (rate(m[5m]))`, `max(max_over_time(m[5m]))`, `sum by (g) (rate(m{g="7"}[5m]))`} {
			name := strings.ReplaceAll(text, " ", "")
			b.Run(fmt.Sprintf("series=%d/query=%s", series, name), func(b *testing.B) {
				a := laketest.Query{Text: text, Start: time.UnixMilli(scrape * perSeries / steps), End: time.UnixMilli(scrape * perSeries), Step: scrape * perSeries / steps * time.Millisecond}
				for b.Loop() {
					require.NoError(b, l.Exec(b.Context(), a).Err)
				}
				b.ReportMetric(l.Counted("promlake_query_subtrees_total", "duckdb")/float64(b.N), "statements/op")
			})
		}
	}
}

// BenchmarkSmall evaluates queries of few series over an hour of a 24h block, and at its end.
func BenchmarkSmall(b *testing.B) {
	const perSeries, scrape = 1920, 15_000
	l := laketest.New(b, laketest.NewDir(b), query.Settings{MinPushedSamples: 50_000})
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []segment.Row
	for i := range 1000 {
		r := segment.Row{Labels: laketest.Metric("m", "g", fmt.Sprint(i%50), "n", fmt.Sprint(i), "job", "node")}
		v := 0
		for j := range perSeries {
			v += rng.IntN(1000)
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * scrape, V: float64(v)})
		}
		rows = append(rows, r)
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	end := time.UnixMilli(scrape * perSeries / 2)
	for _, series := range []string{"1", "22", "22."} {
		for _, text := range []string{`m{n=~"%s"}`, `rate(m{n=~"%s"}[5m])`, `sum by (g) (rate(m{n=~"%s"}[5m]))`, `max_over_time(m{n=~"%s"}[5m])`} {
			text = fmt.Sprintf(text, series)
			b.Run("range/query="+strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
				a := laketest.Query{Text: text, Start: end.Add(-time.Hour), End: end, Step: scrape * time.Millisecond}
				for b.Loop() {
					require.NoError(b, l.Exec(b.Context(), a).Err)
				}
			})
			b.Run("instant/query="+strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, l.Exec(b.Context(), laketest.Query{Text: text, End: end}).Err)
				}
			})
		}
	}
}

// BenchmarkRolled evaluates a function at one time over 90 days of 20 series, one sample a minute.
// Each day is a 24h block with its rollups.
func BenchmarkRolled(b *testing.B) {
	const days, series = 90, 20
	l := laketest.New(b, laketest.NewDir(b), query.Settings{})
	rng := rand.New(rand.NewPCG(1, 2))
	for day := range days {
		var rows []segment.Row
		for i := range series {
			r := segment.Row{Labels: laketest.Metric("m", "instance", fmt.Sprintf("host-%d:9100", i))}
			for j := range int64(24 * 60) {
				r.Floats = append(r.Floats, segment.Float{T: int64(day)*24*60*minute + j*minute + 1, V: float64(rng.IntN(1000))})
			}
			rows = append(rows, r)
		}
		l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, Rollups: true}, rows)
	}
	for _, fn := range []string{"max_over_time", "count_over_time", "sum_over_time"} {
		b.Run("fn="+fn, func(b *testing.B) {
			a := laketest.Query{Text: "max(" + fn + "(m[90d]))", End: time.UnixMilli(days*24*60*minute - 17*minute)}
			for b.Loop() {
				require.NoError(b, l.Exec(b.Context(), a).Err)
			}
			b.ReportMetric(l.Counted("promlake_query_pushed_total", "rollups")/float64(b.N), "rollups/op")
		})
	}
}
