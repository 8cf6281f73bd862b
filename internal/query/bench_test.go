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

// BenchmarkSelect reads one of ten metrics from segments of one flush each.
func BenchmarkSelect(b *testing.B) {
	for _, tc := range []struct{ segments, series, samples int }{{1, 10, 10}, {1, 10_000, 10}, {1, 1000, 480}, {300, 1000, 1}, {1000, 100, 1}} {
		b.Run(fmt.Sprintf("segments=%d/series=%d/samples=%d", tc.segments, tc.series, tc.samples), func(b *testing.B) {
			l := laketest.New(b, laketest.NewDir(b), query.Settings{})
			rng := rand.New(rand.NewPCG(1, 2))
			for s := range tc.segments {
				var rows []segment.Row
				for m := range 10 {
					for i := range tc.series {
						r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", m), "instance", fmt.Sprintf("host-%d:9100", i), "job", "node", "env", "production", fmt.Sprintf("extra%d", m), "x")}
						for j := range tc.samples {
							r.Floats = append(r.Floats, segment.Float{T: int64(s*tc.samples+j) * 1000, V: rng.Float64()})
						}
						rows = append(rows, r)
					}
				}
				l.Write(tenant.Default, rows)
			}
			read := func() int {
				q, err := l.Querier(0, 7_000_000)
				require.NoError(b, err)
				set := q.Select(b.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m3"))
				n := 0
				for set.Next() {
					n++
				}
				require.NoError(b, set.Err())
				return n
			}
			require.Equal(b, tc.series, read())
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
			b.ReportMetric(float64(tc.segments*tc.series*tc.samples)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// BenchmarkBlockSelect reads samples of one 24h block: all of them, one series of a thousand, and
// one hour of all series.
func BenchmarkBlockSelect(b *testing.B) {
	const series, perSeries, step = 1000, 2880, 30_000
	l := laketest.New(b, laketest.NewDir(b), query.Settings{})
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []segment.Row
	for i := range series {
		r := segment.Row{Labels: laketest.Metric("m", "instance", fmt.Sprintf("host-%d:9100", i), "job", "node", "env", "production")}
		v := 0
		for j := range perSeries {
			v += rng.IntN(1000)
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * step, V: float64(v) / 100})
		}
		rows = append(rows, r)
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	for _, tc := range []struct {
		name       string
		mint, maxt int64
		instance   string
		samples    int
	}{
		{"all", 0, key.L24h.Millis(), ".+", series * perSeries},
		{"one", 0, key.L24h.Millis(), "host-77:9100", perSeries},
		{"hour", 0, 3_600_000 - 1, ".+", series * 120},
	} {
		b.Run("samples="+tc.name, func(b *testing.B) {
			m := labels.MustNewMatcher(labels.MatchRegexp, "instance", tc.instance)
			b.ReportAllocs()
			for b.Loop() {
				q, err := l.Querier(tc.mint, tc.maxt)
				require.NoError(b, err)
				set, n := q.Select(b.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"), m), 0
				for set.Next() {
					n++
				}
				require.NoError(b, set.Err())
				require.Positive(b, n)
			}
			b.ReportMetric(float64(tc.samples)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
