package sql

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// bucketColumns are the columns of the tables of buckets, without the bits of NaN, which depend on
// the processor.
const bucketColumns = `metric, labels, ts, count, CASE WHEN NOT isnan(sum) THEN sum END, min, max, first, last, first_ts, last_ts,
	CASE WHEN NOT isnan(increase) THEN increase END, changes, resets, nans`

// aggregated is what the table of buckets of a width has, as an aggregation of samples by PromQL's
// functions.
func aggregated(width string) string {
	over := func(function string) string {
		return "prom_" + function + "(ts, value, bucket - INTERVAL '" + width + "', bucket)"
	}
	return `SELECT metric, labels, bucket AS ts, count(*), CASE WHEN NOT isnan(` + over("sum_over_time") + `) THEN ` + over("sum_over_time") + ` END,
		` + over("min_over_time") + `, ` + over("max_over_time") + `, ` + over("first_over_time") + `, ` + over("last_over_time") + `, min(ts), max(ts), NULL::DOUBLE,
		coalesce(` + over("changes") + `, 0)::BIGINT, coalesce(` + over("resets") + `, 0)::BIGINT, count(*) FILTER (isnan(value))
	FROM (SELECT *, time_bucket(INTERVAL '` + width + `', ts - INTERVAL 1 MILLISECOND, TIMESTAMPTZ '2000-01-01 00:00:00+00') + INTERVAL '` + width + `' AS bucket FROM samples)
	GROUP BY metric, labels, bucket`
}

// bucketTables are the tables of buckets with the widths.
var bucketTables = map[string]string{"rollup_5m": "5 minutes", "rollup_1h": "1 hour"}

var countedRows = regexp.MustCompile(`; (\d+) rows of rollups, (\d+) computed from samples`)

// bucketRows returns how many rows of a table of buckets were stored, and how many computed.
func bucketRows(t *testing.T, l *laketest.Lake, text string) (stored, computed int) {
	t.Helper()
	found := countedRows.FindStringSubmatch(strings.Join(l.Rows("EXPLAIN ANALYZE "+text), "\n"))
	require.NotNil(t, found, text)
	stored, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	computed, err = strconv.Atoi(found[2])
	require.NoError(t, err)
	return stored, computed
}

// withHists gives some of the series native histograms.
func withHists(rows []segment.Row) []segment.Row {
	rows = slices.Clone(rows)
	day := laketest.Now().Truncate(24 * time.Hour).UnixMilli()
	rows[2].Hists = []segment.Hist{{T: day + 123_456, H: tsdbutil.GenerateTestHistogram(1)}, {T: day + 9*60*minute + 1, H: tsdbutil.GenerateTestHistogram(2)}}
	return rows
}

// TestSQLRollups: the rows of buckets are those of an aggregation of samples, and the same bit for
// bit whether they are stored or computed.
func TestSQLRollups(t *testing.T) {
	rows := withHists(laketest.RollupRows()[:4])
	for _, state := range laketest.RollupStates {
		t.Run(state.Name, func(t *testing.T) {
			_, plain, rolled := laketest.LakesOfRollups(t, rows, state.Name == "deletions", state.Apply)
			for table, width := range bucketTables {
				want := plain.Rows("SELECT " + bucketColumns + " FROM " + table)
				require.Equal(t, want, rolled.Rows("SELECT "+bucketColumns+" FROM "+table), table)
				if table == "rollup_1h" || state.Name == "plain" {
					require.Equal(t, plain.Rows("SELECT * REPLACE (NULL::DOUBLE AS increase) FROM (SELECT "+strings.ReplaceAll(bucketColumns, "END, changes", "END AS increase, changes")+" FROM "+table+")"),
						plain.Rows(aggregated(width)), table)
				}
				stored, computed := bucketRows(t, rolled, "FROM "+table)
				require.Greater(t, stored, len(want)/4, "%s: %d are computed", table, computed)
				require.Equal(t, len(want), stored+computed)
			}
		})
	}
}

// TestSQLRollupColumns: each column alone, and conditions that are read from the plan, select the
// same as after a LIMIT, which keeps DuckDB from moving them.
func TestSQLRollupColumns(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 7000, Rollups: true}, withHists(laketest.RollupRows()[:4]))
	laketest.RollupStates[2].Apply(l)
	for table := range bucketTables {
		all := columns(l, "SELECT * FROM "+table)
		require.Equal(t, []string{"metric", "labels", "ts", "count", "sum", "min", "max", "first", "last", "first_ts", "last_ts", "increase", "changes", "resets", "nans"}, all)
		for _, c := range laketest.Pick(table == "rollup_1h", all, nil) {
			require.Equal(t, l.Rows("SELECT "+c+" FROM (FROM "+table+" LIMIT 1000000)"), l.Rows("SELECT "+c+" FROM "+table), c)
		}
		rng := rand.New(rand.NewPCG(4, 4))
		at := func() string {
			return fmt.Sprintf("make_timestamptz(%d)", (laketest.Now().UnixMilli()-rng.Int64N(60)*60*minute)/(5*minute)*(5*minute)*1000+laketest.Pick(rng.IntN(2) == 0, rng.Int64N(3)-1, 0))
		}
		for range 2 {
			for _, where := range []string{"ts = " + at(), "ts > " + at(), "ts <= " + at() + " AND labels['i'] IN ('0', '3')", "ts BETWEEN " + at() + " AND " + at(), "ts < " + at() + " OR labels['job'] = 'b'"} {
				require.Equal(t, l.Rows("FROM (FROM "+table+" LIMIT 1000000) WHERE "+where), l.Rows("FROM "+table+" WHERE "+where), where)
			}
		}
	}
	day := fmt.Sprint(laketest.Now().Truncate(24 * time.Hour).UnixMicro())
	hour := "FROM rollup_1h WHERE labels['i'] = '3' AND ts > make_timestamptz(" + day + ") AND ts <= make_timestamptz(" + day + ") + INTERVAL 3 HOUR"
	stored, computed := bucketRows(t, l, hour)
	require.Equal(t, len(l.Rows(hour)), stored)
	require.Zero(t, computed, "nothing but whole buckets of one block")
	read := l.Counted("promlake_query_samples_read_total")
	l.Rows(hour)
	require.Equal(t, read, l.Counted("promlake_query_samples_read_total"))
}

// TestSQLRollupsJoin: of series that are scraped on the full second, the last bucket of a day has a
// sample in the block of the next day. It is joined, not computed.
func TestSQLRollupsJoin(t *testing.T) {
	day := laketest.Now().Truncate(24 * time.Hour).UnixMilli()
	rng := rand.New(rand.NewPCG(1, 1))
	var rows []segment.Row
	for i := range 4 {
		r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i))}
		for at := day - 5*60*minute; at <= day+2*60*minute; at += 5000 {
			if rng.IntN(2000) > i {
				r.Floats = append(r.Floats, segment.Float{T: at, V: rng.NormFloat64()})
			}
		}
		rows = append(rows, r)
	}
	l, plain := laketest.New(t, laketest.NewDir(t), query.Settings{}), laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, Rollups: true}, rows)
	plain.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	for table := range bucketTables {
		require.Equal(t, plain.Rows("FROM "+table), l.Rows("FROM "+table))
		_, computed := bucketRows(t, l, "FROM "+table)
		require.Zero(t, computed)
		for _, where := range []string{"=", "<=", ">"} {
			text := fmt.Sprintf("SELECT ts, sum, labels['i'] FROM %s WHERE ts %s make_timestamptz(%d)", table, where, day*1000)
			require.Equal(t, plain.Rows(text), l.Rows(text), text)
		}
	}
}
