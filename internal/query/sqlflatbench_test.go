package query_test

import (
	"database/sql"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

// flatStatement is a statement over the table samples, and the same over a flat Parquet file, with
// the columns that it reads there and the condition for a row group, by the column's statistics.
type flatStatement struct {
	name, ours, flat string
	columns, groups  string
}

var flatStatements = []flatStatement{
	{"full scan", "SELECT count(*), sum(value), max(ts) FROM samples", "SELECT count(*), sum(value), max(ts) FROM flat", "'ts', 'value'", "true"},
	{
		"one metric", "SELECT count(*), sum(value) FROM samples WHERE metric = 'm3'", "SELECT count(*), sum(value) FROM flat WHERE metric = 'm3'",
		"'metric', 'value'", "path_in_schema = 'metric' AND stats_min_value <= 'm3' AND stats_max_value >= 'm3'",
	},
	{
		"one series over 30 days", "SELECT ts, value FROM samples WHERE metric = 'm3' AND labels['instance'] = 'host-07:9100'",
		"SELECT ts, value FROM flat WHERE metric = 'm3' AND instance = 'host-07:9100'",
		"'metric', 'instance', 'ts', 'value'", "path_in_schema = 'metric' AND stats_min_value <= 'm3' AND stats_max_value >= 'm3'",
	},
	{
		"a label by hour", "SELECT labels['instance'] AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM samples WHERE metric = 'm3' GROUP BY ALL",
		"SELECT instance AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM flat WHERE metric = 'm3' GROUP BY ALL",
		"'metric', 'instance', 'ts', 'value'", "path_in_schema = 'metric' AND stats_min_value <= 'm3' AND stats_max_value >= 'm3'",
	},
	{
		"a label by hour, of rollup_1h", "SELECT labels['instance'] AS i, ts AS h, sum(sum) / sum(count) FROM rollup_1h WHERE metric = 'm3' GROUP BY ALL",
		"SELECT instance AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM flat WHERE metric = 'm3' GROUP BY ALL",
		"'metric', 'instance', 'ts', 'value'", "path_in_schema = 'metric' AND stats_min_value <= 'm3' AND stats_max_value >= 'm3'",
	},
	{
		"last value of each series", "SELECT metric, labels, arg_max(value, ts) FROM samples GROUP BY ALL",
		"SELECT metric, instance, job, arg_max(value, ts) FROM flat GROUP BY ALL", "'metric', 'instance', 'job', 'ts', 'value'", "true",
	},
	{
		"last value by two labels", "SELECT metric, labels['instance'], labels['job'], arg_max(value, ts) FROM samples GROUP BY ALL",
		"SELECT metric, instance, job, arg_max(value, ts) FROM flat GROUP BY ALL", "'metric', 'instance', 'job', 'ts', 'value'", "true",
	},
}

// writeMonth stores 30 days of samples every minute in a block for each day, and returns their
// number.
func writeMonth(b *testing.B, store *dirStore, series int) (l *lake, rows int) {
	rng := rand.New(rand.NewPCG(1, 1))
	const days = 30
	all := make([]segment.Row, series)
	end := testNow().Truncate(24 * time.Hour).UnixMilli()
	for i := range all {
		all[i].Labels = metric(fmt.Sprintf("m%d", i%10), "instance", fmt.Sprintf("host-%02d:9100", i/10), "job", "node", "cluster", "eu-1")
		v := 0.0
		for t := end - days*24*60*minute + int64(i); t < end; t += minute {
			v += float64(rng.IntN(100)) / 4
			all[i].Floats = append(all[i].Floats, segment.Float{T: t, V: v})
		}
		rows += len(all[i].Floats)
	}
	l = newLake(b, store, query.Settings{})
	l.writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 128 << 10, fileBytes: 64 << 20, rollups: true}, all)
	return l, rows
}

// flatLake returns a lake with 30 days of samples every minute, and the path of the same samples as
// a flat Parquet file, sorted by series and time.
func flatLake(b *testing.B, series int) (l *lake, db *sql.DB, path string, rows int) {
	l, rows = writeMonth(b, newDirStore(b), series)
	raw := filepath.Join(b.TempDir(), "raw.parquet")
	f, err := os.Create(raw)
	require.NoError(b, err)
	require.NoError(b, l.SQL(b.Context(), query.Statement{
		Text: "SELECT metric, labels['instance'] AS instance, labels['job'] AS job, labels['cluster'] AS cluster, ts, value FROM samples", Format: "parquet",
	}, dropped{f}))
	require.NoError(b, f.Close())
	db, err = sql.Open("duckdb", "")
	require.NoError(b, err)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	path = filepath.Join(b.TempDir(), "flat.parquet")
	for _, s := range []string{
		"SET threads = 2", "COPY (FROM read_parquet('" + raw + "') ORDER BY metric, instance, job, ts) TO '" + path + "' (FORMAT parquet, COMPRESSION zstd)",
		"CREATE VIEW flat AS FROM read_parquet('" + path + "')",
	} {
		_, err := db.Exec(s)
		require.NoError(b, err, s)
	}
	return l, db, path, rows
}

// best is the shortest of some runs.
func best(b *testing.B, run func()) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 5 {
		start := time.Now()
		run()
		least = min(least, time.Since(start))
	}
	return least
}

var readBytes = regexp.MustCompile(`row groups, (\d+) bytes`)

// BenchmarkSQLAgainstFlat compares statements with plain DuckDB over a flat Parquet file of the
// same samples: the ratios of the shortest times of five, and of the bytes that are read. It also
// measures rows as Arrow over HTTP. Run it with -benchtime 1x.
func BenchmarkSQLAgainstFlat(b *testing.B) {
	l, db, path, rows := flatLake(b, 200)
	for _, tc := range flatStatements {
		b.Run("statement="+strings.ReplaceAll(tc.name, " ", "-"), func(b *testing.B) {
			ours := best(b, func() {
				require.NoError(b, l.SQL(b.Context(), query.Statement{Text: tc.ours, Format: "arrow"}, dropped{io.Discard}))
			})
			flat := best(b, func() {
				found, err := db.Query(tc.flat)
				require.NoError(b, err)
				for found.Next() {
				}
				require.NoError(b, found.Err())
				require.NoError(b, found.Close())
			})
			var flatBytes float64
			meta := "parquet_metadata('" + path + "')"
			require.NoError(b, db.QueryRow("SELECT sum(total_compressed_size) FROM "+meta+" WHERE path_in_schema IN ("+tc.columns+
				") AND row_group_id IN (SELECT row_group_id FROM "+meta+" WHERE "+tc.groups+")").Scan(&flatBytes))
			found := readBytes.FindStringSubmatch(strings.Join(l.sql("EXPLAIN "+tc.ours), "\n"))
			require.NotNil(b, found)
			bytes, err := strconv.ParseFloat(found[1], 64)
			require.NoError(b, err)
			b.ReportMetric(ours.Seconds()*1000, "ms")
			b.ReportMetric(flat.Seconds()*1000, "flat-ms")
			b.ReportMetric(ours.Seconds()/flat.Seconds(), "time-ratio")
			b.ReportMetric(bytes/1e6, "MB")
			b.ReportMetric(bytes/flatBytes, "bytes-ratio")
		})
	}
	b.Run("arrow-over-http", func(b *testing.B) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.NoError(b, l.SQL(r.Context(), query.Statement{Text: "SELECT ts, value FROM samples", Format: "arrow"}, dropped{w}))
		}))
		defer server.Close()
		var cpu float64
		took := best(b, func() {
			var before, after syscall.Rusage
			require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
			answer, err := http.Get(server.URL)
			require.NoError(b, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(b, err)
			require.NoError(b, answer.Body.Close())
			require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
			seconds := func(r *syscall.Rusage) float64 {
				return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
			}
			if used := seconds(&after) - seconds(&before); cpu == 0 || used < cpu {
				cpu = used
			}
		})
		b.ReportMetric(float64(rows)/took.Seconds()/1e6, "Mrows/s")
		b.ReportMetric(float64(rows)/cpu/1e6, "Mrows/CPU-s")
	})
}
