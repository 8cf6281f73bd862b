package sql

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// dropped is a result that nobody reads.
type dropped struct{ io.Writer }

func (dropped) Reset() bool { return false }

// BenchmarkSQL measures statements over a day of 1,000 series with a sample every minute.
func BenchmarkSQL(b *testing.B) {
	const series, samples = 1000, 1440
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]segment.Row, series)
	for i := range rows {
		rows[i].Labels = laketest.Metric(fmt.Sprintf("m%d", i%10), "instance", fmt.Sprintf("host-%d:9100", i/10), "job", "node", "cluster", "eu-1", "namespace", "default")
		v := 0.0
		for t := range int64(samples) {
			v += float64(rng.IntN(100))
			rows[i].Floats = append(rows[i].Floats, segment.Float{T: laketest.Now().UnixMilli() - (samples-t)*minute, V: v})
		}
	}
	l := laketest.New(b, laketest.NewDir(b), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 64 << 10, FileBytes: 64 << 20}, rows)
	for _, tc := range []struct {
		name, text, format string
		rows               float64
	}{
		{"nothing", "SELECT 1", "arrow", 1},
		{"arrow-narrow", "SELECT ts, value FROM samples", "arrow", series * samples},
		{"arrow-all", "FROM samples", "arrow", series * samples},
		{"csv-all", "FROM samples", "csv", series * samples},
		{"parquet-all", "FROM samples", "parquet", series * samples},
		{"count", "SELECT count(*) FROM samples", "json", series * samples},
		{"one-series", "SELECT ts, value FROM samples WHERE metric = 'm1' AND labels['instance'] = 'host-7:9100'", "arrow", samples},
		{"group-by-label-and-hour", "SELECT labels['instance'] AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM samples WHERE metric = 'm1' GROUP BY ALL", "arrow", series / 10 * samples},
		{"group-by-column-and-hour", "SELECT instance, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM promlake_metric('m1', NULL, NULL) GROUP BY ALL", "arrow", series / 10 * samples},
	} {
		b.Run("statement="+tc.name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, l.SQL(b.Context(), query.Statement{Text: tc.text, Format: tc.format}, dropped{io.Discard}))
			}
			b.ReportMetric(tc.rows*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
