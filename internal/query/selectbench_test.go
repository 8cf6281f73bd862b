package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// BenchmarkDaySelect reads 8 hours of a 24h block that has 20 million samples of ten thousand
// series, scraped on a grid or with jitter.
func BenchmarkDaySelect(b *testing.B) {
	const series, perSeries, step, hour = 10_000, 2000, 43_200, 3_600_000
	for _, jitter := range []int64{1, 20} {
		l := laketest.New(b, laketest.NewDir(b), query.Settings{})
		rng := rand.New(rand.NewPCG(1, 2))
		rows := make([]segment.Row, series)
		for i := range rows {
			r := segment.Row{
				Labels: laketest.Metric(fmt.Sprintf("metric_%d", i%50), "instance", fmt.Sprintf("host-%d:9100", i/50), "job", "node", "env", "production", "region", fmt.Sprint(i%3)),
				Floats: make([]segment.Float, perSeries),
			}
			v := 0
			for j := range r.Floats {
				v += rng.IntN(1000)
				r.Floats[j] = segment.Float{T: int64(j)*step + rng.Int64N(jitter), V: float64(v) / 100}
			}
			rows[i] = r
		}
		l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
		for _, tc := range []struct {
			name   string
			ms     []*labels.Matcher
			series int
		}{
			{"one", []*labels.Matcher{laketest.Equal(model.MetricNameLabel, "metric_7"), laketest.Equal("instance", "host-77:9100")}, 1},
			{"thousand", []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, "metric_(1|12|23|34|49)")}, 1000},
			{"all", []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, "metric.+")}, series},
		} {
			b.Run(fmt.Sprintf("jitter=%d/series=%s", jitter-1, tc.name), func(b *testing.B) {
				b.ReportAllocs()
				samples := 0
				for b.Loop() {
					q, err := l.Querier(8*hour, 16*hour)
					require.NoError(b, err)
					set, n := q.Select(b.Context(), true, nil, tc.ms...), 0
					for set.Next() {
						n++
					}
					require.NoError(b, set.Err())
					require.Equal(b, tc.series, n)
					samples += n * 8 * hour / step
				}
				b.ReportMetric(float64(samples)/b.Elapsed().Seconds()/1e6, "Msamples/s")
			})
		}
	}
}
