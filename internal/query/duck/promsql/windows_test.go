package promsql_test

import (
	"fmt"
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// openWindows returns a database with functions over one window, whose memory a budget counts.
func openWindows(t testing.TB, limit int64, threads int, functions ...string) (*duck.DB, *promsql.Budget) {
	b := promsql.NewBudget(limit)
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 30, Threads: threads, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
		Setup: func(conn mapping.Connection) error { return promsql.RegisterWindows(conn, b, functions) },
	})
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.NoError(t, b.Close())
	})
	return db, b
}

// slideOver sums the windows of series of 15 s over some rows.
func slideOver(db *duck.DB, t testing.TB, rows, series int, width string) (sum float64, err error) {
	text := fmt.Sprintf(`SELECT sum(v) FROM (SELECT prom_count_over_time(ts, value, INTERVAL '%[3]s')
		OVER (PARTITION BY s ORDER BY ts RANGE INTERVAL '%[3]s' PRECEDING) AS v
		FROM (SELECT i %% %[2]d AS s, make_timestamptz(i // %[2]d * 15000000) AS ts, i::DOUBLE AS value FROM range(%[1]d) t(i)))`, rows, series, width)
	err = db.Each(t.Context(), text, nil, []string{duck.Double}, func(_ int, c []duck.Vector) error {
		sum = c[0].Float64s()[0]
		return nil
	})
	return sum, err
}

// TestWindowsGiveTheirMemoryBack: windows that slide are counted once each, need memory by the sample
// and not by the window, and leave none.
func TestWindowsGiveTheirMemoryBack(t *testing.T) {
	for _, threads := range []int{1, 4} {
		db, b := openWindows(t, 0, threads, "count_over_time")
		const series, each = 100, 2000
		got, err := slideOver(db, t, series*each, series, "5 minutes")
		require.NoError(t, err)
		require.InDelta(t, series*(20*each-20*19/2), got, 0)
		require.Less(t, b.Peak(), int64(series*each*100))
		require.NoError(t, db.Close())
		require.Zero(t, b.Used())
	}
}

// TestWindowsExceedTheirBudget: the error of a statement whose windows need too much is the budget's,
// and what it leaves is reclaimed.
func TestWindowsExceedTheirBudget(t *testing.T) {
	db, b := openWindows(t, 1<<20, 2, "count_over_time")
	_, err := slideOver(db, t, 1_000_000, 1, "1 day")
	require.ErrorContains(t, err, "memory")
	var limit *promsql.MemoryError
	require.ErrorAs(t, b.Err(), &limit)
	require.LessOrEqual(t, b.Peak(), int64(1<<20))
	require.NoError(t, db.Close())
	b.Reclaim()
}

// TestWindowsOfOneCall: windows over a list that has one value for all steps of a large grid would
// take hours in one call, which is not interrupted.
func TestWindowsOfOneCall(t *testing.T) {
	b := promsql.NewBudget(0)
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 30, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
		Setup: func(conn mapping.Connection) error { return promsql.RegisterLists(conn, b, []string{"prom_over"}) },
	})
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.NoError(t, b.Close())
	})
	err := db.Each(t.Context(), "SELECT len(prom_over('count_over_time', [1.0::DOUBLE], 'start=0 step=1 n=100000', 'start=0 step=1 n=100000 range=100000'))",
		nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
	require.ErrorContains(t, err, "more than 4294967296 together")
}

func TestRegisterWindowsFails(t *testing.T) {
	b := promsql.NewBudget(0)
	defer b.Close()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 28, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
		Setup: func(conn mapping.Connection) error {
			return promsql.RegisterWindows(conn, b, []string{"rate", "nothing"})
		},
	})
	defer db.Close()
	require.ErrorContains(t, db.Open(), "nothing")
}

// BenchmarkWindows measures the memory of the windows of functions over a million samples.
func BenchmarkWindows(b *testing.B) {
	for _, width := range []string{"5 minutes", "1 hour", "1 day"} {
		b.Run("width="+width, func(b *testing.B) {
			const rows = 1_000_000
			db, budget := openWindows(b, 0, 2, "count_over_time")
			for b.Loop() {
				_, err := slideOver(db, b, rows, 100, width)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(budget.Peak())/rows, "B/sample")
		})
	}
}
