package promsql_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
)

// BenchmarkRange evaluates functions over 19.2M samples of 10k series in a Parquet file, 15 s
// apart, at 480 steps of 60 s, beside a mere scan that groups the same columns. Every other series
// has integers, the others three digits after the point.
func BenchmarkRange(b *testing.B) {
	const series, samples = 10_000, 1_920
	path := filepath.Join(b.TempDir(), "samples.parquet")
	run(b, openRange(b, 1), fmt.Sprintf(`COPY (
		SELECT (i // %d)::UBIGINT AS series_id, make_timestamptz((1700000000000 + i %% %d * 15000) * 1000) AS ts,
			CASE WHEN (i // %d) %% 2 = 0 THEN i %% 1777 * 7 + hash(i) %% 7 ELSE (i %% 1777 * 1000 + hash(i) %% 1000) / 1000 END::DOUBLE AS value
		FROM (SELECT range AS i FROM range(%d))) TO %s (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 131072)`,
		samples, samples, samples, series*samples, duck.Literal(path)))
	db := openRange(b, 2)
	each := func(name, sql string, types ...string) {
		b.Run(name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				rows := 0
				require.NoError(b, db.Each(b.Context(), sql, nil, types, func(n int, _ []duck.Vector) error { rows += n; return nil }))
				require.NotZero(b, rows)
			}
			b.ReportMetric((cpu(b)-before)*1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(b.N)*series*samples/1e6/b.Elapsed().Seconds(), "Msamples/s")
		})
	}
	from := " FROM read_parquet(" + duck.Literal(path) + ")"
	each("fn=none", "SELECT series_id, epoch_us(max(ts)), sum(value)"+from+" GROUP BY series_id", duck.UBigInt, duck.BigInt, duck.Double)
	for _, f := range []struct{ name, keys string }{
		{"count_over_time", ""}, {"rate", ""}, {"max_over_time", ""}, {"avg_over_time", ""}, {"stddev_over_time", ""}, {"deriv", ""},
		{"quantile_over_time", " phi=0.9"}, {"mad_over_time", ""},
	} {
		for _, minutes := range []int{5, 60} {
			spec := fmt.Sprintf("start=1700000060000 step=60000 n=480 range=%d%s", minutes*60_000, f.keys)
			each(fmt.Sprintf("fn=%s/range=%dm", f.name, minutes),
				fmt.Sprintf("SELECT series_id, prom_%s(ts, value, '%s')%s GROUP BY series_id", f.name, spec, from), duck.UBigInt, duck.Doubles)
		}
	}
}

// cpu returns the seconds that the process has computed for, which other processes on the machine
// disturb less than the clock.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
