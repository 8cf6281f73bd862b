package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// floatRows are random series without native histograms, which aggregates cannot see.
func floatRows(rng *rand.Rand) []segment.Row {
	return slices.DeleteFunc(laketest.RandomRows(rng), func(r segment.Row) bool { return len(r.Hists) > 0 })
}

// TestSQLAggregates: PromQL's functions as aggregates have the values of promql(), bit for bit,
// over segments, blocks, duplicates and deletions.
func TestSQLAggregates(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, floatRows(rng))
	laketest.DeleteAll(l)
	calls := map[string]string{} // by PromQL, with %s for the range vector
	for _, name := range []string{
		"rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time", "sum_over_time",
		"count_over_time", "last_over_time", "first_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "mad_over_time",
		"ts_of_min_over_time", "ts_of_max_over_time", "ts_of_first_over_time", "ts_of_last_over_time",
	} {
		calls[name+"(%s)"] = "prom_" + name + "(ts, value, %s)"
	}
	calls["quantile_over_time(0.3, %s)"] = "prom_quantile_over_time(0.3, ts, value, %s)"
	calls["quantile_over_time(-Inf, %s)"] = "prom_quantile_over_time('-inf', ts, value, %s)"
	calls["predict_linear(%s, 1800)"] = "prom_predict_linear(ts, value, %s, 1800)"
	calls["double_exponential_smoothing(%s, 0.3, 0.6)"] = "PROM_double_exponential_smoothing(ts, value, %s, 0.3, 0.6)"
	some := 0
	for _, promql := range slices.Sorted(maps.Keys(calls)) {
		sql := calls[promql]
		end := laketest.Now().UnixMilli() - rng.Int64N(300)*minute
		width := (5 + rng.Int64N(100)) * minute
		moment := func(ms int64) string { return fmt.Sprintf("make_timestamptz(%d)", ms*1000) }
		want := l.Rows("SELECT labels, value FROM promql($1, $2, $2, 1)", fmt.Sprintf(promql, fmt.Sprintf("{__name__=~'m.*'}[%dms]", width)), float64(end)/1000)
		kept := l.Rows(fmt.Sprintf("SELECT labels, v FROM (SELECT metric, labels, %s AS v FROM samples WHERE metric LIKE 'm%%' AND ts > %s AND ts <= %s GROUP BY ALL) WHERE v IS NOT NULL",
			fmt.Sprintf(sql, moment(end-width)+", "+moment(end)), moment(end-width), moment(end)))
		require.Equal(t, want, kept, promql)
		some += len(want)
	}
	require.Greater(t, some, 100)
}

// TestSQLAggregatesByWindow: a statement has one value for each window, and samples outside of the
// window that its arguments name do not count.
func TestSQLAggregatesByWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, floatRows(rng)[:20])
	end := laketest.Now().Truncate(time.Hour)
	start := end.Add(-6 * time.Hour)
	want := l.Rows("SELECT ts, labels, value FROM promql('increase({__name__=~\"m.*\"}[1h])', $1, $2, '1h')", start.Add(time.Hour).UnixMilli()/1000, end.UnixMilli()/1000)
	const statement = `SELECT hour + INTERVAL 1 HOUR AS ts, labels, v FROM (
		SELECT metric, labels, hour, prom_increase(ts, value, hour, hour + INTERVAL 1 HOUR) AS v
		FROM (SELECT *, time_bucket(INTERVAL 1 HOUR, ts - INTERVAL 1 MILLISECOND) AS hour FROM samples WHERE metric LIKE 'm%' AND ts > make_timestamptz($1) AND ts <= make_timestamptz($2))
		GROUP BY ALL) WHERE v IS NOT NULL`
	require.Equal(t, want, l.Rows(statement, start.UnixMicro(), end.UnixMicro()))
	require.NotEmpty(t, want)
	all := l.Rows("SELECT labels, prom_count_over_time(ts, value, make_timestamptz($1), make_timestamptz($2)) FROM samples WHERE metric = 'm1' GROUP BY ALL", start.UnixMicro(), end.UnixMicro())
	some := l.Rows("SELECT labels, count(*)::DOUBLE FROM samples WHERE metric = 'm1' AND ts > make_timestamptz($1) AND ts <= make_timestamptz($2) GROUP BY ALL", start.UnixMicro(), end.UnixMicro())
	for _, row := range some {
		require.True(t, slices.Contains(all, row), row)
	}
	require.NotEmpty(t, some)
}

// TestSQLAggregatesSlide: windows that slide are a join of their ends with the samples, as the
// documentation has it, with the values of a range query.
func TestSQLAggregatesSlide(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, floatRows(rand.New(rand.NewPCG(27, 28)))[:20])
	laketest.DeleteAll(l)
	end := laketest.Now()
	start := end.Add(-4 * time.Hour)
	for _, function := range []string{"rate", "stddev_over_time", "last_over_time"} {
		want := l.Rows("SELECT ts, labels, value FROM promql('"+function+"({__name__=~\"m.*\"}[30m])', $1, $2, '7m')", start.Unix(), end.Unix())
		got := l.Rows("SELECT * FROM ("+slide(function)+") WHERE value IS NOT NULL", start.UnixMicro(), end.UnixMicro())
		require.Equal(t, want, got, function)
		require.Greater(t, len(want), 100)
	}
}

// slide is the statement of the documentation for the windows of 30 minutes that end every 7.
func slide(function string) string {
	return `SELECT window_end AS ts, labels, prom_` + function + `(s.ts, value, window_end - INTERVAL 30 MINUTE, window_end) AS value
		FROM generate_series(make_timestamptz($1), make_timestamptz($2), INTERVAL 7 MINUTE) ends(window_end)
		JOIN samples s ON s.ts > window_end - INTERVAL 30 MINUTE AND s.ts <= window_end
		WHERE metric LIKE 'm%' GROUP BY metric, labels, window_end`
}

// TestSQLAggregatesFail: wrong windows, too much memory and cancellations are errors of their kind.
func TestSQLAggregatesFail(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{QueryMemoryBytes: 16 << 20})
	laketest.WriteMixture(l, tenant.Default, floatRows(rand.New(rand.NewPCG(25, 26)))[:20])
	ask := func(ctx context.Context, text string) error {
		return l.SQL(ctx, query.Statement{Text: text, Format: "csv"}, &laketest.Result{})
	}
	err := ask(t.Context(), "SELECT prom_rate(ts, value, now(), now()) FROM samples")
	require.ErrorContains(t, err, "range")
	require.ErrorContains(t, ask(t.Context(), "SELECT prom_rate(ts, value) FROM samples"), "prom_rate")
	err = ask(t.Context(), "SELECT prom_rate(ts, value, ts - INTERVAL 5 MINUTE, ts) OVER (PARTITION BY labels ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTE PRECEDING AND CURRENT ROW) FROM samples")
	require.ErrorContains(t, err, "is not available with OVER")
	err = ask(t.Context(), "SELECT prom_rate(make_timestamptz(i), i, make_timestamptz(0), now()) FROM range(100000000) t(i)")
	var limit *query.LimitError
	require.True(t, errors.As(err, &limit), "%v", err)
	require.Contains(t, err.Error(), "--query.max-memory")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ask(ctx, "SELECT prom_rate(ts, value, ts - INTERVAL 1 HOUR, ts) FROM samples GROUP BY ts"), context.Canceled)
	require.NoError(t, ask(t.Context(), "SELECT prom_rate(ts, value, ts - INTERVAL 1 HOUR, ts) FROM samples GROUP BY ts"))
}
