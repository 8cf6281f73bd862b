package sql

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/tests/support/laketest"
)

// flatStatement is a statement over the table samples, and the same over a flat Parquet file, with
// the columns that it reads there, and the conditions that the statistics of a row group have to
// admit.
type flatStatement struct {
	name, ours, flat string
	columns          string
	equal            map[string]string // column: value
}

var flatStatements = []flatStatement{
	{"full scan", "SELECT count(*), sum(value), max(ts) FROM samples", "SELECT count(*), sum(value), max(ts) FROM flat", "'ts', 'value'", nil},
	{
		"one metric", "SELECT count(*), sum(value) FROM samples WHERE metric = 'm3'", "SELECT count(*), sum(value) FROM flat WHERE metric = 'm3'",
		"'metric', 'value'", map[string]string{"metric": "m3"},
	},
	{
		"one series over 30 days", "SELECT ts, value FROM samples WHERE metric = 'm3' AND labels['instance'] = 'host-07:9100'",
		"SELECT ts, value FROM flat WHERE metric = 'm3' AND instance = 'host-07:9100'",
		"'metric', 'instance', 'ts', 'value'", map[string]string{"metric": "m3", "instance": "host-07:9100"},
	},
	{
		"a label by hour", "SELECT labels['instance'] AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM samples WHERE metric = 'm3' GROUP BY ALL",
		"SELECT instance AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM flat WHERE metric = 'm3' GROUP BY ALL",
		"'metric', 'instance', 'ts', 'value'", map[string]string{"metric": "m3"},
	},
	{
		"a label by hour, of rollup_1h", "SELECT labels['instance'] AS i, ts AS h, sum(sum) / sum(count) FROM rollup_1h WHERE metric = 'm3' GROUP BY ALL",
		"SELECT instance AS i, time_bucket(INTERVAL 1 HOUR, ts) AS h, avg(value) FROM flat WHERE metric = 'm3' GROUP BY ALL",
		"'metric', 'instance', 'ts', 'value'", map[string]string{"metric": "m3"},
	},
	{
		"last value of each series", "SELECT metric, labels, arg_max(value, ts) FROM samples GROUP BY ALL",
		"SELECT metric, instance, job, arg_max(value, ts) FROM flat GROUP BY ALL", "'metric', 'instance', 'job', 'ts', 'value'", nil,
	},
	{
		"last value by two labels", "SELECT metric, labels['instance'], labels['job'], arg_max(value, ts) FROM samples GROUP BY ALL",
		"SELECT metric, instance, job, arg_max(value, ts) FROM flat GROUP BY ALL", "'metric', 'instance', 'job', 'ts', 'value'", nil,
	},
}

// writeMonth stores 30 days of samples every minute in a block for each day, and returns their
// number.
func writeMonth(b *testing.B, store *laketest.Dir, series int) (l *laketest.Lake, rows int) {
	rng := rand.New(rand.NewPCG(1, 1))
	const days = 30
	all := make([]segment.Row, series)
	end := laketest.Now().Truncate(24 * time.Hour).UnixMilli()
	for i := range all {
		all[i].Labels = laketest.Metric(fmt.Sprintf("m%d", i%10), "instance", fmt.Sprintf("host-%02d:9100", i/10), "job", "node", "cluster", "eu-1")
		v := 0.0
		for t := end - days*24*60*minute + int64(i); t < end; t += minute {
			v += float64(rng.IntN(100)) / 4
			all[i].Floats = append(all[i].Floats, segment.Float{T: t, V: v})
		}
		rows += len(all[i].Floats)
	}
	l = laketest.New(b, store, query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 128 << 10, FileBytes: 64 << 20, Rollups: true}, all)
	return l, rows
}

// flatLake returns a lake with 30 days of samples every minute, and the path of the same samples as
// a flat Parquet file, sorted by series and time.
func flatLake(b *testing.B, series int) (l *laketest.Lake, db *sql.DB, path string, rows int) {
	l, rows = writeMonth(b, laketest.NewDir(b), series)
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

// spent is what a run took: time, and time of the process on processors, in seconds.
type spent struct{ wall, cpu float64 }

// pause is the time between two runs, in which the stage opens the database of the next statement.
// Its time on processors counts.
const pause = 100 * time.Millisecond

// measured runs once.
func measured(b *testing.B, run func()) spent {
	used := func() float64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
	}
	start, before := time.Now(), used()
	run()
	wall := time.Since(start).Seconds()
	time.Sleep(pause)
	return spent{wall, used() - before}
}

// best is the least of some runs, of each.
func best(b *testing.B, run func()) spent {
	least := spent{math.Inf(1), math.Inf(1)}
	for range 5 {
		took := measured(b, run)
		least.wall, least.cpu = min(least.wall, took.wall), min(least.cpu, took.cpu)
	}
	return least
}

// flatBytes is what DuckDB reads of a flat file for a statement: the columns of the row groups that
// their statistics do not exclude.
func flatBytes(b *testing.B, db *sql.DB, path string, s flatStatement) (n float64) {
	meta := "parquet_metadata('" + path + "')"
	query := "SELECT sum(total_compressed_size) FROM " + meta + " WHERE path_in_schema IN (" + s.columns + ")"
	for column, value := range s.equal {
		query += fmt.Sprintf(" AND row_group_id IN (SELECT row_group_id FROM %s WHERE path_in_schema = '%s' AND stats_min_value <= '%s' AND stats_max_value >= '%[3]s')", meta, column, value)
	}
	require.NoError(b, db.QueryRow(query).Scan(&n))
	return n
}

var readBytes = regexp.MustCompile(`row groups, (\d+) bytes`)

// BenchmarkSQLAgainstFlat compares statements with plain DuckDB over a flat Parquet file of the
// same samples: the ratios of the least times of five, of the times of the process on processors,
// and of the bytes that are read. first is the time of the first run, before which nothing was
// decoded. It also measures rows as Arrow from the endpoint. Run it with -benchtime 1x.
func BenchmarkSQLAgainstFlat(b *testing.B) {
	l, db, path, rows := flatLake(b, 200)
	for _, tc := range flatStatements {
		b.Run("statement="+strings.ReplaceAll(tc.name, " ", "-"), func(b *testing.B) {
			run := func() {
				require.NoError(b, l.SQL(b.Context(), query.Statement{Text: tc.ours, Format: "arrow"}, dropped{io.Discard}))
			}
			first := measured(b, run)
			ours := best(b, run)
			flat := best(b, func() {
				found, err := db.Query(tc.flat)
				require.NoError(b, err)
				for found.Next() {
				}
				require.NoError(b, found.Err())
				require.NoError(b, found.Close())
			})
			found := readBytes.FindStringSubmatch(strings.Join(l.Rows("EXPLAIN "+tc.ours), "\n"))
			require.NotNil(b, found)
			bytes, err := strconv.ParseFloat(found[1], 64)
			require.NoError(b, err)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(first.wall*1000, "first-ms")
			b.ReportMetric(first.cpu*1000, "first-CPU-ms")
			b.ReportMetric(ours.wall*1000, "ms")
			b.ReportMetric(flat.wall*1000, "flat-ms")
			b.ReportMetric(ours.wall/flat.wall, "time-ratio")
			b.ReportMetric(ours.cpu*1000, "CPU-ms")
			b.ReportMetric(flat.cpu*1000, "flat-CPU-ms")
			b.ReportMetric(ours.cpu/flat.cpu, "CPU-ratio")
			b.ReportMetric(bytes/1e6, "MB")
			b.ReportMetric(bytes/flatBytes(b, db, path, tc), "bytes-ratio")
		})
	}
	b.Run("arrow-over-http", func(b *testing.B) {
		client := http.Client{Transport: &http.Transport{DisableCompression: true}} // as clients of Arrow are
		h, err := api.New(settings.Default[api.Settings](), endpoint{l.Engine(), l.Stage}, nil, laketest.Now, slog.New(slog.DiscardHandler), nil)
		require.NoError(b, err)
		server := httptest.NewServer(h)
		defer server.Close()
		took := best(b, func() {
			answer, err := client.Get(server.URL + "/api/v1/sql?format=arrow&query=SELECT+ts,+value+FROM+samples")
			require.NoError(b, err)
			require.Equal(b, http.StatusOK, answer.StatusCode)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(b, err)
			require.NoError(b, answer.Body.Close())
		})
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(rows)/took.wall/1e6, "Mrows/s")
		b.ReportMetric(float64(rows)/took.cpu/1e6, "Mrows/CPU-s")
	})
}

// endpoint is a backend of the HTTP API.
type endpoint struct {
	promql.QueryEngine
	*query.Stage
}
