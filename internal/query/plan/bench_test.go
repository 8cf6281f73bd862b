package plan

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// BenchmarkBuild plans queries over many series, up to the text of the statement.
func BenchmarkBuild(b *testing.B) {
	for name, text := range map[string]string{
		"aggregate": `sum by (g) (rate(m_total[5m]))`, "join": `rate(m_total[5m]) / rate(m_total[1m])`, "function": `abs(m_total)`,
	} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			r := &Resolution{Rows: int64(n) * 1000}
			for i := range n {
				l := labels.FromStrings(model.MetricNameLabel, "m_total", "g", strconv.Itoa(i%100), "instance", fmt.Sprintf("host-%06d:9100", i), "job", "node", "region", "eu")
				r.Series = append(r.Series, Series{ID: l.Hash(), Labels: l})
			}
			b.Run(fmt.Sprintf("query=%s/series=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					expr, err := testParser.ParseExpr(text)
					require.NoError(b, err)
					q, err := Prepare(expr, ranged(instant))
					require.NoError(b, err)
					resolved := map[*parser.VectorSelector]*Resolution{}
					for _, s := range q.Selectors() {
						resolved[s.Expr] = r
					}
					p := q.Build(resolved)
					require.Len(b, p.Pushed, 1)
					_ = p.Pushed[0].Statement(scansOf(p.Pushed[0]), "1")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/series")
			})
		}
	}
}
