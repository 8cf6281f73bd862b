package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// windowCalls are PromQL's functions with %s for the range vector, and their calls in SQL with %s for
// the length of the window.
var windowCalls = func() map[string]string {
	calls := map[string]string{
		"quantile_over_time(0.3, %s)":                "prom_quantile_over_time(0.3, ts, value, %s)",
		"quantile_over_time(+Inf, %s)":               "prom_quantile_over_time('inf', ts, value, %s)",
		"predict_linear(%s, 1800)":                   "prom_predict_linear(ts, value, %s, 1800)",
		"double_exponential_smoothing(%s, 0.3, 0.6)": "prom_double_exponential_smoothing(ts, value, %s, 0.3, 0.6)",
	}
	for _, name := range []string{
		"rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time", "sum_over_time",
		"count_over_time", "last_over_time", "first_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "mad_over_time",
		"ts_of_min_over_time", "ts_of_max_over_time", "ts_of_first_over_time", "ts_of_last_over_time",
	} {
		calls[name+"(%s)"] = "prom_" + name + "(ts, value, %s)"
	}
	return calls
}()

// frames are frames that end at the current row and hold all samples of its window; DuckDB evaluates
// them in different ways. %s is the length of the window.
var frames = []string{
	"(PARTITION BY metric, labels ORDER BY ts RANGE BETWEEN INTERVAL '%s' PRECEDING AND CURRENT ROW)",
	"(PARTITION BY metric, labels ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) -- %s",
	"(PARTITION BY metric, labels ORDER BY ts ROWS UNBOUNDED PRECEDING) -- %s",
	"(PARTITION BY metric, labels ORDER BY ts DESC ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) -- %s",
}

// TestSQLAggregatesOver: as window functions, PromQL's functions have the values of promql() at the
// times of the rows, bit for bit.
func TestSQLAggregatesOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, floatRows(rng))
	laketest.DeleteAll(l)
	times := l.Rows("SELECT DISTINCT epoch_ms(ts) AS t FROM samples WHERE metric LIKE 'm%'")
	some, n := 0, laketest.Rounds(3)
	for i, promql := range slices.Sorted(maps.Keys(windowCalls)) {
		width := fmt.Sprintf("%d seconds", 60*(5+rng.Int64N(100)))
		frame := frames[i%len(frames)]
		if strings.Contains(frame, "INTERVAL") {
			frame = fmt.Sprintf(frame, width)
		} else {
			frame = strings.TrimSuffix(frame, " -- %s")
		}
		call := fmt.Sprintf(windowCalls[promql], "INTERVAL '"+width+"'")
		over := l.Rows("SELECT epoch_ms(ts) AS t, labels, v FROM (SELECT ts, labels, " + call + " OVER " + frame + " AS v FROM samples WHERE metric LIKE 'm%') WHERE v IS NOT NULL")
		for range n {
			at := times[rng.IntN(len(times))]
			want := l.Rows("SELECT epoch_ms(p.ts) AS t, p.labels, p.value FROM promql($1, $2, $2, 1) p WHERE p.labels IN (SELECT labels FROM samples WHERE epoch_ms(ts) = "+at+" AND metric LIKE 'm%')",
				fmt.Sprintf(promql, "{__name__=~'m.*'}["+strings.Replace(width, " seconds", "s", 1)+"]"), seconds(t, at))
			got := slices.DeleteFunc(slices.Clone(over), func(row string) bool { return !strings.HasPrefix(row, at+" | ") })
			require.Equal(t, want, got, "%s over %s", call, frame)
			some += len(want)
		}
	}
	require.Greater(t, some, 25*n)
}

// seconds returns a time in ms as seconds, as PromQL takes it.
func seconds(t *testing.T, ms string) float64 {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(ms, &n)
	require.NoError(t, err)
	return float64(n) / 1000
}

// TestSQLWindowsSlideToRows: the window ends at the last row of the frame, which may have no value:
// rows at the steps of a range query give its values.
func TestSQLWindowsSlideToRows(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, floatRows(rand.New(rand.NewPCG(43, 44)))[:20])
	end := laketest.Now()
	want := l.Rows("SELECT ts, labels, value FROM promql('rate({__name__=~\"m.*\"}[30m])', $1, $2, '7m')", end.Unix()-4*3600, end.Unix())
	got := l.Rows(`WITH all_rows AS (
			SELECT metric, labels, ts, value, false AS step FROM samples WHERE metric LIKE 'm%'
			UNION ALL SELECT DISTINCT metric, labels, generate_series, NULL, true FROM series, generate_series(make_timestamptz($1), make_timestamptz($2), INTERVAL 7 MINUTE) WHERE metric LIKE 'm%')
		SELECT ts, labels, rate FROM (
			SELECT *, prom_rate(ts, value, '30 minutes') OVER (PARTITION BY metric, labels ORDER BY ts RANGE INTERVAL 30 MINUTE PRECEDING) AS rate FROM all_rows)
		WHERE step AND rate IS NOT NULL`, end.UnixMicro()-4*3600*1_000_000, end.UnixMicro())
	require.Equal(t, want, got)
	require.Greater(t, len(want), 100)
}

// TestSQLWindowsHoldTheirBounds: what the frame has beside the window does not count, at its open
// start and before; a frame without rows, and one without values, have no value.
func TestSQLWindowsHoldTheirBounds(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	const rows = "(SELECT make_timestamptz(i * 1000000) AS ts, CASE WHEN i = 3 THEN NULL ELSE i END::DOUBLE AS value FROM range(6) t(i))"
	over := func(call, frame string) []string {
		t.Helper()
		return l.Rows("SELECT epoch(ts)::INT AS t, v::INT FROM (SELECT ts, " + call + " OVER (ORDER BY ts " + frame + ") AS v FROM " + rows + ")")
	}
	want := []string{"0 | 1", "1 | 2", "2 | 2", "3 | 1", "4 | 1", "5 | 2"}
	for _, frame := range []string{"RANGE INTERVAL 2 SECOND PRECEDING", "", "ROWS 5 PRECEDING", "ROWS UNBOUNDED PRECEDING"} {
		require.Equal(t, want, over("prom_count_over_time(ts, value, INTERVAL 2 SECOND)", frame), frame)
	}
	require.Equal(t, []string{"0 | (null)", "1 | 0", "2 | 1", "3 | 2", "4 | (null)", "5 | 4"},
		over("prom_sum_over_time(ts, value, INTERVAL 2 SECOND)", "ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING"))
	require.Equal(t, []string{"0 | (null)", "1 | (null)", "2 | 1", "3 | 1", "4 | 1", "5 | 2"},
		over("prom_count_over_time(ts, value, INTERVAL 2 SECOND) FILTER (ts > make_timestamptz(1000000))", ""))
	require.Equal(t, []string{"2"}, l.Rows("SELECT prom_count_over_time(ts, value, '2 seconds')::INT FROM "+rows), "without OVER")
}

// TestSQLWindowsFail: wrong windows, too much memory and cancellations are errors of their kind.
func TestSQLWindowsFail(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{QueryMemoryBytes: 16 << 20})
	ask := func(ctx context.Context, text string) error {
		return l.SQL(ctx, query.Statement{Text: text, Format: "csv"}, &laketest.Result{})
	}
	const rows = " FROM (SELECT make_timestamptz(i * 1000000) AS ts, i::DOUBLE AS value FROM range(1000) t(i))"
	for text, want := range map[string]string{
		"SELECT prom_rate(ts, value, INTERVAL 1 MONTH) OVER (ORDER BY ts)":                                                               "months",
		"SELECT prom_rate(ts, value, INTERVAL 0 SECOND) OVER (ORDER BY ts)":                                                              "range is not positive",
		"SELECT prom_rate(ts, value, to_seconds(1 + value::INT)) OVER (ORDER BY ts)":                                                     "differ among the rows of a window",
		"SELECT prom_rate(ts, value, ts, ts + INTERVAL 1 SECOND)":                                                                        "differ among the rows of a group",
		"SELECT prom_rate(ts, value, ts - INTERVAL 5 MINUTE, ts) OVER (ORDER BY ts)":                                                     "prom_rate(ts, value, INTERVAL 5 MINUTE)",
		"SELECT prom_double_exponential_smoothing(ts, value, '1 day', 2, 0.5) OVER (ORDER BY ts)":                                        "sf is not between 0 and 1",
		"SELECT prom_rate(ts, value, 'soon') OVER (ORDER BY ts)":                                                                         "soon",
		"SELECT prom_rate(ts, value) OVER (ORDER BY ts)":                                                                                 "prom_rate",
		"SELECT prom_rate(ts, value, '1 day') OVER ()":                                                                                   "needs ORDER BY",
		"SELECT prom_rate(ts, value, '1 day') OVER (PARTITION BY value % 7)":                                                             "needs ORDER BY",
		"SELECT prom_rate(ts, value, '1 day') OVER (ROWS UNBOUNDED PRECEDING)":                                                           "needs ORDER BY",
		"SELECT prom_rate(ts, value, '1 day') OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)":               "needs ORDER BY",
		"SELECT prom_rate(ts, value, '1 day') OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES)": "needs ORDER BY",
		"SELECT prom_rate(ts, value, '1 day' ORDER BY ts)":                                                                               "it has an order of its own",
		"SELECT value % 7, prom_rate(ts, value, '1 day' ORDER BY ts DESC) FROM (SELECT now() AS ts, 1 AS value) GROUP BY ALL --":         "it has an order of its own",
		"SELECT prom_rate(DISTINCT ts, value, '1 day')":                                                                                  "it has an order of its own",
		"SELECT prom_rate(ts, value, '1 day' ORDER BY ts) OVER (ORDER BY ts)":                                                            "it has an order of its own",
		"SELECT prom_rate(ts, value, '1 day') WITHIN GROUP (ORDER BY ts)":                                                                "",
		"SELECT list_aggr(list(ts), 'prom_rate', 1.0, INTERVAL 1 DAY)":                                                                   "",
		"SELECT finalize(prom_rate(ts, value, '1 day') EXPORT_STATE)":                                                                    "",
		"SELECT prom_rate(ts, value, '1 day') OVER w FROM (SELECT now() AS ts, 1 AS value) WINDOW w AS () --":                            "needs ORDER BY",
	} {
		require.ErrorContains(t, ask(t.Context(), text+rows), want, text)
	}
	for _, text := range []string{ // windows of many samples, and many samples in windows of few
		"SELECT prom_rate(make_timestamptz(i), i, INTERVAL 1 DAY) OVER (ORDER BY i) FROM range(100000) t(i)",
		"SELECT max(r) FROM (SELECT prom_rate(make_timestamptz(i * 1000000), i, INTERVAL 1 MINUTE) OVER (ORDER BY i ROWS 60 PRECEDING) AS r FROM range(10000000) t(i))",
	} {
		err := ask(t.Context(), text)
		var limit *query.LimitError
		require.True(t, errors.As(err, &limit), "%s: %v", text, err)
		require.Contains(t, err.Error(), "--query.max-memory")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ask(ctx, "SELECT prom_rate(ts, value, INTERVAL 1 MINUTE) OVER (ORDER BY ts)"+rows), context.Canceled)
	require.NoError(t, ask(t.Context(), "SELECT prom_rate(ts, value, INTERVAL 1 MINUTE) OVER (ORDER BY ts)"+rows))
}

// TestSQLWindowsOfWholePartitions: windows whose frames are all rows of the partition in effect are
// evaluated over many rows.
func TestSQLWindowsOfWholePartitions(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	for _, window := range []string{
		"ORDER BY 5", "ORDER BY NULL", "ORDER BY (SELECT 1)", "ORDER BY i - i", "PARTITION BY k ORDER BY k", "PARTITION BY k ORDER BY k, 7",
		"PARTITION BY k ORDER BY k RANGE BETWEEN CURRENT ROW AND CURRENT ROW", "ORDER BY k GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
		"ORDER BY i ROWS BETWEEN 100000 PRECEDING AND 100000 FOLLOWING", "ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 100000 FOLLOWING",
	} {
		got := l.Rows("SELECT DISTINCT v::INT FROM (SELECT prom_count_over_time(make_timestamptz(i * 15000000), i, INTERVAL 1 MINUTE) OVER (" + window + ") AS v FROM (SELECT i, 5 AS k FROM range(5000) t(i)))")
		require.Equal(t, []string{"4"}, got, window)
	}
}
