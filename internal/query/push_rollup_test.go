package query_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// rollupWays ask at times that buckets end at, and at others.
func rollupWays(text string) []laketest.Query {
	day := laketest.Now().Truncate(24 * time.Hour)
	return []laketest.Query{
		{Text: text, End: day.Add(20 * time.Hour)},
		{Text: text, End: laketest.Now().Add(-17 * time.Minute)},
		{Text: text, Start: day.Add(-30 * time.Hour), End: day.Add(21 * time.Hour), Step: time.Hour},
		{Text: text, Start: day.Add(-20 * time.Hour), End: day.Add(2 * time.Hour), Step: 5 * time.Minute},
		{Text: text, Start: day.Add(-20*time.Hour + 1234*time.Millisecond), End: day.Add(2 * time.Hour), Step: 17 * time.Minute},
		{Text: text, Start: day.Add(10 * time.Hour), End: day.Add(12 * time.Hour), Step: 77 * time.Second},
	}
}

// rolledQueries are the selectors that rollups may answer, for each function.
var (
	rolledFuncs  = []string{"max_over_time", "min_over_time", "last_over_time", "first_over_time", "ts_of_last_over_time", "ts_of_first_over_time", "present_over_time", "count_over_time"}
	rolledRanges = []string{"m[5m]", "m[1h]", "m[2h] offset 1h", "m[90m] offset -5m", "m[30h]", "m[2d] offset 7m", "m[1d] @ end()", "m[7m]", "m[100m] @ 1699900000"}
	rolledOthers = []string{
		"m", "m offset 5m", "m @ end()", "m offset 1m", "timestamp(m)", "timestamp(m offset 10m)", "sum by (job) (m)", "count(m) by (job)", `absent_over_time(m{i="3"}[1h])`,
		`absent_over_time(m{i="new"}[3h])`, "max(max_over_time(m[2d]))", "max_over_time(max_over_time(m[5m])[2h:5m])", "topk(2, min_over_time(m[1h]))",
	}
	unrolled = []string{
		"sum_over_time(m[1h])", "avg_over_time(m[1d])", "rate(m[1h])", "increase(m[1h])", "delta(m[1h])", "changes(m[1h])", "resets(m[1h])", "stddev_over_time(m[1h])",
		"quantile_over_time(0.5, m[1h])", "ts_of_max_over_time(m[1h])", "ts_of_min_over_time(m[1h])", "irate(m[1h])", "deriv(m[1h])",
	}
)

// TestRollupsAnswer: answers from rollups equal those from samples, bit for bit.
func TestRollupsAnswer(t *testing.T) {
	rows := laketest.RollupRows()
	for _, state := range laketest.RollupStates {
		t.Run(state.Name, func(t *testing.T) {
			engine, plain, rolled := laketest.LakesOfRollups(t, rows, state.Name == "deletions", state.Apply)
			queries := rolledOthers
			for _, fn := range rolledFuncs {
				for _, sel := range rolledRanges {
					queries = append(queries, fn+"("+sel+")")
				}
			}
			for n, text := range append(queries, unrolled...) {
				if state.Name != "plain" && n%3 > 0 {
					continue
				}
				for _, a := range rollupWays(text) {
					want := plain.Exec(t.Context(), a)
					laketest.Identical(t, want, rolled.Exec(t.Context(), a), a)
					if n%9 == 0 {
						laketest.Same(t, engine.Exec(t.Context(), a), want, a)
					}
				}
			}
			require.Zero(t, plain.Counted("promlake_query_pushed_total", "rollups"))
			require.Greater(t, rolled.Counted("promlake_query_pushed_total", "rollups"), float64(len(queries)))
			require.Zero(t, rolled.Counted("promlake_query_kept_queries_total"))
		})
	}
}

// TestRollupsAreRead: rollups are read where they are worth it and answer exactly, and nowhere
// else.
func TestRollupsAreRead(t *testing.T) {
	rows := laketest.RollupRows()
	day := laketest.Now().Truncate(24 * time.Hour)
	hourly := func(text string) laketest.Query {
		return laketest.Query{Text: text, Start: day.Add(-30 * time.Hour), End: day.Add(21 * time.Hour), Step: time.Hour}
	}
	odd := func(text string) laketest.Query {
		return laketest.Query{Text: text, Start: day.Add(-20*time.Hour + 1234*time.Millisecond), End: day.Add(2 * time.Hour), Step: 17 * time.Minute}
	}
	at := func(text string) laketest.Query {
		return laketest.Query{Text: text, End: laketest.Now().Add(-17 * time.Minute)}
	}
	_, plain, rolled := laketest.LakesOfRollups(t, rows, false, func(*laketest.Lake) {})
	_, _, deleted := laketest.LakesOfRollups(t, rows, false, laketest.RollupStates[1].Apply)
	_, _, late := laketest.LakesOfRollups(t, rows, false, laketest.RollupStates[2].Apply)
	for _, tc := range []struct {
		name    string
		lake    *laketest.Lake
		asked   laketest.Query
		rollups float64
	}{
		{"windows of whole hours", rolled, hourly("max_over_time(m[2h])"), 3},
		{"windows of whole five minutes", rolled, hourly("count_over_time(m[5m] offset 5m)"), 3},
		{"instants", rolled, hourly("sum(m)"), 3},
		{"an instant's window", rolled, at("max_over_time(m[2d])"), 3},
		{"what long windows share", rolled, odd("min_over_time(m[40h])"), 2},
		{"windows that begin anywhere", rolled, odd("max_over_time(m[2h])"), 0},
		{"a function of all samples", rolled, hourly("sum_over_time(m[2h])"), 0},
		{"a rate", rolled, hourly("rate(m[2h])"), 0},
		{"blocks without rollups", plain, hourly("max_over_time(m[2h])"), 0},
		{"a deleted series", deleted, hourly(`max_over_time(m{i="1"}[2h])`), 2},
		{"its neighbour", deleted, hourly(`max_over_time(m{i="2"}[2h])`), 3},
		{"a series with later samples", late, hourly(`max_over_time(m{i="0"}[2h])`), 2},
		{"its neighbours", late, hourly(`max_over_time(m{i!="0"}[2h])`), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.lake.Counted("promlake_query_pushed_total", "rollups")
			require.NoError(t, tc.lake.Exec(t.Context(), tc.asked).Err)
			require.Equal(t, tc.rollups, tc.lake.Counted("promlake_query_pushed_total", "rollups")-before)
		})
	}
}

// TestRollupsSpareSamples: where a block's rollups are read, only the row groups at the edges of
// windows are read, and explain shows that.
func TestRollupsSpareSamples(t *testing.T) {
	_, plain, rolled := laketest.LakesOfRollups(t, laketest.RollupRows(), false, func(*laketest.Lake) {})
	read := func(l *laketest.Lake) (samples float64, groups, rollups int64) {
		before, a := l.Counted("promlake_query_samples_read_total"), laketest.Query{Text: "max_over_time(m[2d])", End: laketest.Now().Add(-17 * time.Minute)}
		require.NoError(t, l.Exec(t.Context(), a).Err)
		ex, err := l.Explain(t.Context(), query.Question{Text: a.Text, End: a.End})
		require.NoError(t, err)
		for _, f := range ex.Pushed[0].Statements[0].Files {
			require.GreaterOrEqual(t, f.Bytes.Considered, f.Bytes.Read, f.Key)
			if groups += f.RowGroups.Read; strings.HasSuffix(f.Key, "/rollup-1h.parquet") {
				rollups++
				require.Positive(t, f.Bytes.Read)
			}
		}
		return l.Counted("promlake_query_samples_read_total") - before, groups, rollups
	}
	all, allGroups, none := read(plain)
	some, someGroups, rollups := read(rolled)
	require.Zero(t, none)
	require.Equal(t, int64(3), rollups)
	require.Less(t, 10*some, all)
	require.Positive(t, someGroups)
	require.Less(t, someGroups, allGroups)
	require.Equal(t, float64(someGroups), rolled.Counted("promlake_query_row_groups_total", "read"))
}

// TestRollupsGone: a rollup that is missing or broken is an error of the storage, not an answer.
func TestRollupsGone(t *testing.T) {
	for _, broken := range []bool{false, true} {
		l := laketest.New(t, laketest.NewDir(t), query.Settings{MinPushedSamples: -1, MaxStaleness: time.Hour})
		blocks := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, Rollups: true}, laketest.RollupRows())
		gone := 0
		for _, b := range blocks {
			name := b.Key(tenant.Default).File("rollup-1h.parquet")
			err := l.Store.Delete(t.Context(), name)
			if errors.Is(err, os.ErrNotExist) { // the day with few samples
				continue
			}
			require.NoError(t, err)
			if gone++; broken {
				laketest.Put(t, l.Store, name, []byte("PAR1 this is none PAR1"))
			}
		}
		require.Equal(t, 3, gone)
		res := l.Exec(t.Context(), laketest.Query{Text: "max_over_time(m[2d])", End: laketest.Now()})
		var storage promql.ErrStorage
		require.ErrorAs(t, res.Err, &storage)
		require.ErrorContains(t, res.Err, "rollup-1h.parquet")
	}
}
