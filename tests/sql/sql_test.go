package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// In milliseconds.
const (
	minute = 60_000
	hour   = 60 * minute
)

// flat are the rows of float samples that are no stale markers.
func flat(rows []segment.Row) []string {
	out := []string{}
	for _, r := range rows {
		for _, f := range r.Floats {
			if !value.IsStaleNaN(f.V) {
				out = append(out, laketest.RowOf(r.Labels, f.T, f.V))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestSQLSamples: in every layout, the table samples has the samples that were written and not
// deleted, bit for bit.
func TestSQLSamples(t *testing.T) {
	rows := laketest.RandomRows(rand.New(rand.NewPCG(5, 6)))
	rows[3].Hists = nil
	for i := range rows { // series with floats and histograms
		if i%6 == 0 {
			rows[i].Hists = append(rows[i].Hists, rows[9].Hists...)
			at := map[int64]bool{}
			for _, h := range rows[i].Hists {
				at[h.T] = true
			}
			rows[i].Floats = slices.DeleteFunc(rows[i].Floats, func(f segment.Float) bool { return at[f.T] })
		}
	}
	for _, layout := range laketest.Layouts {
		for _, remote := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/remote=%v", layout.Name, remote), func(t *testing.T) {
				dir := laketest.NewDir(t)
				l := laketest.New(t, dir, query.Settings{})
				layout.Write(l, tenant.Default, rows)
				if remote {
					l = laketest.New(t, &laketest.Remote{Store: dir}, query.Settings{})
				}
				require.Equal(t, flat(rows), l.Rows("SELECT metric, labels, ts, value FROM samples"))
				laketest.DeleteAll(l)
				l = laketest.New(t, l.Store, query.Settings{})
				want := flat(laketest.Without(rows))
				require.Equal(t, want, l.Rows("SELECT metric, labels, ts, value FROM samples"))
				require.Equal(t, []string{fmt.Sprint(len(want))}, l.Rows("SELECT count(*) FROM samples"))
			})
		}
	}
}

// TestSQLIsPromQL: rows are the samples of a range selector.
func TestSQLIsPromQL(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, laketest.RandomRows(rng))
	laketest.DeleteAll(l)
	for _, selector := range []struct{ promql, sql string }{
		{`m0`, `metric = 'm0'`},
		{`m1{job="a"}`, `metric = 'm1' AND labels['job'] = 'a'`},
		{`{__name__=~"m1|m2",job=""}`, `metric IN ('m1', 'm2') AND labels['job'] IS NULL`},
		{`{__name__=~"m.*",i=~"1.*"}`, `metric LIKE 'm%' AND labels['i'] LIKE '1%'`},
		{`{__name__!="m0",i!="7",i!=""}`, `metric <> 'm0' AND labels['i'] <> '7'`},
	} {
		end := laketest.Now().Add(-time.Duration(rng.IntN(600)) * time.Minute)
		minutes := 1 + rng.IntN(700)
		res := l.Exec(t.Context(), laketest.Query{Text: fmt.Sprintf("%s[%dm]", selector.promql, minutes), End: end})
		m, err := res.Matrix()
		require.NoError(t, err)
		want := []string{}
		for _, s := range m {
			for _, p := range s.Floats {
				want = append(want, laketest.RowOf(s.Metric, p.T, p.F))
			}
		}
		slices.Sort(want)
		got := l.Rows("SELECT metric, labels, ts, value FROM samples WHERE ts > make_timestamptz($1 - $2) AND ts <= make_timestamptz($1) AND "+selector.sql,
			end.UnixMicro(), int64(minutes)*minute*1000)
		require.Equal(t, want, got, selector.sql)
		require.NotEmpty(t, got, selector.sql)
	}
}

// condition returns a random condition on samples.
func condition(rng *rand.Rand, depth int) string {
	one := func(from ...string) string { return from[rng.IntN(len(from))] }
	at := func() string {
		return fmt.Sprintf("make_timestamptz(%d)", laketest.Now().UnixMicro()-rng.Int64N(25*60*minute)*1000+laketest.Pick(rng.IntN(3) == 0, rng.Int64N(1000), 0))
	}
	if depth > 0 && rng.IntN(2) == 0 {
		return "(" + condition(rng, depth-1) + one(" AND ", " OR ", " AND NOT ") + condition(rng, depth-1) + ")"
	}
	label := one("metric", "metric", "labels['i']", "labels['job']", `labels['Odd name']`, "labels['nothing']", "labels['__name__']")
	text := func() string { return one("'m1'", "'m2'", "'1'", "'3'", "'a'", "'b'", "''", "'x'", "NULL") }
	switch rng.IntN(8) {
	case 0:
		return "ts " + one("<", "<=", ">", ">=", "=", "<>") + " " + at()
	case 1:
		return at() + one(" < ", " <= ", " > ", " >= ") + "ts"
	case 2:
		return "ts BETWEEN " + at() + " AND " + at()
	case 3:
		return label + one(" = ", " <> ", " < ", " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + text()
	case 4:
		return label + one(" IN ", " NOT IN ") + "(" + text() + ", " + text() + ", " + text() + ")"
	case 5:
		return label + one(" IS NULL", " IS NOT NULL")
	case 6:
		return label + one(" LIKE ", " NOT LIKE ", " ILIKE ") + one("'m%'", "'%1'", "'%a%'", "'m_'", "'%'", "'M%'")
	default:
		return "value " + one("<", ">", "=") + " 50"
	}
}

// TestSQLConditions: conditions that are read from the plan select the same rows as conditions that
// DuckDB alone evaluates, which a LIMIT below them keeps from moving.
func TestSQLConditions(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, laketest.RandomRows(rng)[:20])
	some, n := 0, laketest.Rounds(50)
	for range n {
		c := condition(rng, 3)
		want := l.Rows("SELECT metric, labels, ts, value FROM (FROM samples LIMIT 1000000000) WHERE " + c)
		require.Equal(t, want, l.Rows("SELECT metric, labels, ts, value FROM samples WHERE "+c), c)
		if len(want) > 0 {
			some++
		}
	}
	require.Greater(t, some, n/5)
}

// TestSQLSpares: conditions spare reads of objects and of row groups.
func TestSQLSpares(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.Layouts[1].Write(l, tenant.Default, laketest.RandomRows(rand.New(rand.NewPCG(1, 2))))
	read := func(text string, params ...any) float64 {
		before := l.Counted("promlake_query_samples_read_total")
		l.Rows(text, params...)
		return l.Counted("promlake_query_samples_read_total") - before
	}
	all := read("SELECT count(*) FROM samples")
	for _, tc := range []struct {
		where string
		most  float64 // share of all
	}{
		{"metric = 'm1'", 0.3}, {"labels['i'] = '1'", 0.05}, {"labels.i IN ('1', '2')", 0.1}, {"metric LIKE 'm1%' AND value > 3", 0.3},
		{fmt.Sprintf("ts > make_timestamptz(%d)", laketest.Now().Add(-time.Hour).UnixMicro()), 0.1}, {"metric = 'm1' OR labels['i'] = '2'", 0.35},
		{"metric = 'nothing'", 0},
	} {
		require.LessOrEqual(t, read("SELECT count(*) FROM samples WHERE "+tc.where), all*tc.most, tc.where)
	}
	one := read("SELECT count(*) FROM samples WHERE labels['i'] = '1'")
	require.Equal(t, one, read("SELECT count(*) FROM samples WHERE labels['i'] = $1", "1"), "parameters")
	require.Equal(t, one, read("WITH s AS (FROM samples) SELECT count(*) FROM s JOIN (VALUES (1)) x ON true WHERE labels['i'] = '1'"), "through a CTE and a join")
	require.Equal(t, 2*one, read("SELECT count(*) FROM samples a, samples b WHERE a.labels['i'] = '1' AND b.labels['i'] = '1' AND a.ts = b.ts"), "each mention by itself")
}

// matrixRows are the rows of promql() for the result of a query.
func matrixRows(t *testing.T, res *promql.Result) []string {
	t.Helper()
	require.NoError(t, res.Err)
	m, err := res.Matrix()
	require.NoError(t, err)
	out := []string{}
	for _, s := range m {
		for _, p := range s.Floats {
			out = append(out, laketest.RowOf(s.Metric, p.T, p.F))
		}
	}
	slices.Sort(out)
	return out
}

// TestPromQLInSQL: promql() has the values of a range query.
func TestPromQLInSQL(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	laketest.WriteMixture(l, tenant.Default, laketest.PushRows())
	end := laketest.Now()
	start := end.Add(-90 * time.Minute)
	for _, text := range laketest.PushedQueries {
		want := matrixRows(t, l.Exec(t.Context(), laketest.Query{Text: text, Start: start, End: end, Step: 3 * time.Minute}))
		got := l.Rows("SELECT metric, labels, ts, value FROM promql($1, make_timestamptz($2), make_timestamptz($3), '3m')", text, start.UnixMicro(), end.UnixMicro())
		require.Equal(t, want, got, text)
	}
	times := map[string]string{ // ways to write the arguments
		"3m":  "'" + start.Format(time.RFC3339) + "', " + fmt.Sprint(end.Unix()),
		"180": "TIMESTAMP '" + start.Format("2006-01-02 15:04:05") + "', TIMESTAMPTZ '" + end.Format("2006-01-02 15:04:05+00") + "'",
	}
	want := l.Rows("FROM promql('sum(m1)', make_timestamptz($1), make_timestamptz($2), INTERVAL 3 MINUTE)", start.UnixMicro(), end.UnixMicro())
	require.NotEmpty(t, want)
	for step, args := range times {
		require.Equal(t, want, l.Rows("FROM promql('sum(m1)', "+args+", '"+step+"')"), args)
	}
	joined := l.Rows(`SELECT count(*) FROM promql('sum by (job) (m1)', $1, $2, '1m') p JOIN (SELECT DISTINCT labels['job'] AS job FROM samples WHERE metric = 'm1') s ON p.labels['job'] = s.job`,
		start.Unix(), end.Unix())
	require.Equal(t, l.Rows("SELECT count(*) FROM promql('sum by (job) (m1)', $1, $2, '1m')", start.Unix(), end.Unix()), joined)
}

// TestSQLMetric: promlake_metric has the rows of samples, with labels as columns.
func TestSQLMetric(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, laketest.RandomRows(rand.New(rand.NewPCG(11, 12))))
	require.Equal(t, []string{"ts", "value", "Odd name", "i", "job"}, columns(l, "FROM promlake_metric('m1', NULL, NULL)"))
	for _, where := range []string{"true", "i = '1'", "job IS NULL", `job = 'a' AND "Odd name" = 'x'`, "ts > make_timestamptz(1699900000000000) AND i <> '6'"} {
		flat := strings.NewReplacer(`"Odd name"`, "labels['Odd name']", "job", "labels['job']", "i =", "labels['i'] =", "i <>", "labels['i'] <>").Replace(where)
		require.Equal(t, l.Rows("SELECT ts, value, labels['i'], labels['job'] FROM samples WHERE metric = 'm1' AND "+flat),
			l.Rows("SELECT ts, value, i, job FROM promlake_metric('m1', NULL, NULL) WHERE "+where), where)
	}
	from, to := laketest.Now().Add(-5*time.Hour), laketest.Now().Add(-time.Hour)
	require.Equal(t,
		l.Rows("SELECT ts, value FROM samples WHERE metric = 'm1' AND ts BETWEEN make_timestamptz($1) AND make_timestamptz($2)", from.UnixMicro(), to.UnixMicro()),
		l.Rows("SELECT ts, value FROM promlake_metric('m1', make_timestamptz($1), make_timestamptz($2))", from.UnixMicro(), to.UnixMicro()))
	require.Empty(t, l.Rows("FROM promlake_metric('nothing', NULL, NULL)"))
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m9", "TS", "a", "Value", "b", "value", "c", "A", "d", "a", "e"), Floats: []segment.Float{{T: laketest.Now().UnixMilli(), V: 1}}}})
	l = laketest.New(t, l.Store, query.Settings{})
	require.Equal(t, []string{"ts", "value", "A", "TS_1", "Value_1", "a_1", "value_2"}, columns(l, "FROM promlake_metric('m9', NULL, NULL)"))
	require.Equal(t, []string{"d | a | b | e | c"}, l.Rows(`SELECT * EXCLUDE (ts, value) FROM promlake_metric('m9', NULL, NULL) WHERE a_1 = 'e' AND "TS_1" = 'a'`))
}

// columns returns the names of the columns of a statement.
func columns(l *laketest.Lake, text string) []string {
	l.TB.Helper()
	var out laketest.Result
	require.NoError(l.TB, l.SQL(l.TB.Context(), query.Statement{Text: text, Format: "csv"}, &out), text)
	head, _, _ := strings.Cut(out.String(), "\n")
	return strings.Split(head, ",")
}

// TestSQLSumsWithTheirBits: sums in a stated order have the same bits however the samples are stored,
// and PromQL's aggregates have them in any order.
func TestSQLSumsWithTheirBits(t *testing.T) {
	rows := laketest.RandomRows(rand.New(rand.NewPCG(51, 52)))
	want := map[string][]string{}
	for _, layout := range laketest.Layouts {
		l := laketest.New(t, laketest.NewDir(t), query.Settings{Threads: 2})
		layout.Write(l, tenant.Default, rows)
		for _, text := range []string{
			"SELECT sum(value / 3 ORDER BY metric, labels, ts), avg(value / 3 ORDER BY metric, labels, ts) FROM samples WHERE isfinite(value)",
			"SELECT labels['job'] AS job, sum(value / 3 ORDER BY metric, labels, ts) FROM samples WHERE isfinite(value) GROUP BY job",
			"SELECT metric, labels, prom_sum_over_time(ts, value / 3, '-inf', 'inf') FROM samples WHERE isfinite(value) GROUP BY metric, labels",
		} {
			got := l.Rows(text)
			require.NotEmpty(t, got)
			if want[text] == nil {
				want[text] = got
			}
			require.Equal(t, want[text], got, "%s: %s", layout.Name, text)
		}
	}
}

// TestSQLTimeBucket: time_bucket returns what DuckDB's own returns, with its type and its errors.
func TestSQLTimeBucket(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	both := func(arguments string) string {
		return fmt.Sprintf("SELECT time_bucket(%[1]s)::VARCHAR, typeof(time_bucket(%[1]s)) UNION ALL SELECT system.main.time_bucket(%[1]s)::VARCHAR, typeof(system.main.time_bucket(%[1]s))", arguments)
	}
	widths := []string{"1 MINUTE", "90 SECONDS", "7 HOURS", "1 DAY", "5 DAYS", "2 WEEKS", "1 MONTH", "7 MONTHS", "3 YEARS"}
	for _, width := range widths {
		text := fmt.Sprintf("SELECT make_timestamptz(i * 7919000000123) FROM range(-30, 250) t(i) WHERE time_bucket(INTERVAL '%[1]s', make_timestamptz(i * 7919000000123)) IS DISTINCT FROM system.main.time_bucket(INTERVAL '%[1]s', make_timestamptz(i * 7919000000123))", width)
		require.Empty(t, l.Rows(text), width)
	}
	for _, arguments := range []string{
		"INTERVAL 1 DAY, TIMESTAMPTZ '2026-01-11 10:00:00+00'", "INTERVAL 1 DAY, TIMESTAMP '2026-01-11 10:00:00'", "INTERVAL 1 DAY, DATE '2026-01-11'",
		"'1 day', TIMESTAMPTZ '2026-01-11 10:00:00+00'", "INTERVAL 1 DAY, NULL", "NULL, TIMESTAMPTZ '2026-01-11 10:00:00+00'", "INTERVAL 1 DAY, TIMESTAMPTZ 'infinity'",
		"INTERVAL 1 DAY, TIMESTAMPTZ '2026-01-11 10:00:00+00', INTERVAL 3 HOURS", "INTERVAL 1 DAY, TIMESTAMPTZ '2026-01-11 10:00:00+00', 'Europe/Berlin'",
		"INTERVAL 1 DAY, TIMESTAMPTZ '2026-01-11 10:00:00+00', TIMESTAMPTZ '2026-01-01 03:00:00+00'",
	} {
		rows := l.Rows(both(arguments))
		require.Len(t, rows, 2, arguments)
		require.Equal(t, rows[0], rows[1], arguments)
	}
	for _, arguments := range []string{"INTERVAL '1 month 1 day', now()", "INTERVAL 1 DAY, 5", "INTERVAL 1 DAY, '2026-01-11'"} {
		var errs [2]error
		for i, name := range []string{"time_bucket", "system.main.time_bucket"} {
			errs[i] = l.SQL(t.Context(), query.Statement{Text: "SELECT " + name + "(" + arguments + ")", Format: "csv"}, &laketest.Result{})
			require.Error(t, errs[i], arguments)
		}
		require.Equal(t, errs[1].Error(), errs[0].Error(), arguments)
	}
}
