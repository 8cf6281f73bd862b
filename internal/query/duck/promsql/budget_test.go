package promsql_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// rates is a statement over rows of series groups under a budget.
func rates(b *promsql.Budget, series, rows int) string {
	return fmt.Sprintf(`SELECT (range %% %d)::UBIGINT, prom_quantile((range %% 1000000)::UINTEGER, [range::DOUBLE], 'phi=0.5 budget=%d')
		FROM range(%d) GROUP BY 1`, series, b.ID(), rows)
}

func exec(ctx context.Context, db *duck.DB, sql string) error {
	return db.Each(ctx, sql, nil, []string{duck.UBigInt, duck.Doubles}, func(int, []duck.Vector) error { return nil })
}

func TestBudgetCounts(t *testing.T) {
	db := openRange(t, 2)
	b := promsql.NewBudget(0)
	require.NoError(t, exec(t.Context(), db, rates(b, 10, 100_000)))
	require.Zero(t, b.Used())
	require.GreaterOrEqual(t, b.Peak(), int64(100_000*32), "an ordinal, a length, a bound and a value for each row")
	require.Less(t, b.Peak(), int64(100_000*100))
	require.NoError(t, b.Err())
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	require.GreaterOrEqual(t, b.Peak(), int64(100_000*32))
	require.ErrorContains(t, exec(t.Context(), db, rates(b, 10, 10)), "no open budget has the id")
}

// TestMemoryLimit: whatever the limit is, a statement works or fails with a typed error, and frees
// everything.
func TestMemoryLimit(t *testing.T) {
	db := openRange(t, 2)
	failed := 0
	for limit := int64(100); limit < 64<<20; limit *= 3 {
		b := promsql.NewBudget(limit)
		err := exec(t.Context(), db, rates(b, 100, 100_000))
		require.Zero(t, b.Used(), "limit %d", limit)
		require.LessOrEqual(t, b.Peak(), limit)
		if err != nil {
			failed++
			require.ErrorContains(t, err, fmt.Sprintf("query memory limit of %d bytes exceeded", limit))
			var over *promsql.MemoryError
			require.ErrorAs(t, b.Err(), &over)
			require.Equal(t, limit, over.Limit)
			require.Greater(t, over.Needed, limit)
			require.ErrorContains(t, over, fmt.Sprintf("query memory limit of %d bytes exceeded: at least %d bytes needed", limit, over.Needed))
		} else {
			require.NoError(t, b.Err())
		}
		require.NoError(t, b.Close())
	}
	require.Greater(t, failed, 2)
	require.Less(t, failed, 12)
}

// whenUsed calls f as soon as the budget holds memory.
func whenUsed(b *promsql.Budget, f func()) {
	go func() {
		for b.Used() == 0 {
			runtime.Gosched()
		}
		f()
	}()
}

func TestBudgetCancel(t *testing.T) {
	db := openRange(t, 2)
	const endless = 1_000_000_000_000
	t.Run("before", func(t *testing.T) {
		b := promsql.NewBudget(0)
		b.Cancel()
		require.ErrorContains(t, exec(t.Context(), db, rates(b, 1, 10)), "query was cancelled")
		require.Zero(t, b.Used())
		require.NoError(t, b.Close())
	})
	t.Run("while gathering", func(t *testing.T) {
		b := promsql.NewBudget(1 << 30)
		whenUsed(b, b.Cancel)
		require.ErrorContains(t, exec(t.Context(), db, rates(b, 10, endless)), "query was cancelled")
		require.Zero(t, b.Used())
		require.NoError(t, b.Close())
	})
	t.Run("by the context", func(t *testing.T) {
		b := promsql.NewBudget(1 << 30)
		ctx, cancel := context.WithCancel(t.Context())
		whenUsed(b, cancel)
		require.ErrorIs(t, exec(ctx, db, rates(b, 10, endless)), context.Canceled)
		require.Zero(t, b.Used())
		require.NoError(t, b.Close())
	})
	t.Run("result not read to its end", func(t *testing.T) {
		b := promsql.NewBudget(0)
		rows, err := db.Query(t.Context(), rates(b, 20_000, 100_000), nil, duck.UBigInt, duck.Doubles)
		require.NoError(t, err)
		require.True(t, rows.Next())
		rows.Close()
		require.Zero(t, b.Used())
		require.NoError(t, b.Close())
	})
}

// TestClosedBudgetOutlivesItsMemory: memory that DuckDB frees after the budget was closed is no
// error, but is reported.
func TestClosedBudgetOutlivesItsMemory(t *testing.T) {
	db := openRange(t, 2)
	b := promsql.NewBudget(0)
	done := make(chan error)
	closed := make(chan struct{})
	whenUsed(b, func() {
		err := b.Close()
		close(closed)
		done <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-closed; cancel() }()
	require.Error(t, exec(ctx, db, rates(b, 1000, 1_000_000_000_000)))
	require.ErrorContains(t, <-done, "bytes are still in use")
	require.Zero(t, b.Used())
}

func TestRegisterTwice(t *testing.T) {
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 64 << 20, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
		Setup: func(c mapping.Connection) error {
			if err := promsql.Register(c); err != nil {
				return err
			}
			return promsql.Register(c)
		},
	})
	defer func() { require.NoError(t, db.Close()) }()
	require.ErrorContains(t, exec(t.Context(), db, "SELECT 1::UBIGINT, [1.0::DOUBLE]"), "register functions: DuckDB refused prom_sum")
}
