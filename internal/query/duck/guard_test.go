package duck_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/guard"
)

// growing is an expression whose text has 10^digits characters, made in one call of functions.
func growing(digits int) string {
	text := "range::VARCHAR"
	for range digits {
		text = "replace(regexp_replace(" + text + ", '.', 'y', 'g'), 'y', 'yyyyyyyyyy')"
	}
	return text
}

// TestGuard: a guard ends a call that makes more than its limit, and one that goes on after Stop;
// other statements of the database are answered, by as many threads as ever.
func TestGuard(t *testing.T) {
	g, err := guard.New(64 << 20)
	require.NoError(t, err)
	leave := g.Enter()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 256 << 20, Threads: 3, Connections: 1, Guard: g,
		TempDir: func() (string, error) { return t.TempDir(), nil },
	})
	defer func() {
		require.NoError(t, db.Close())
		leave()
		g.Close()
	}()
	sum := func(statement string) (n int64, err error) {
		err = db.Each(t.Context(), statement, []string{duck.BigInt}, func(_ int, c []duck.Vector) error {
			n += c[0].Int64s()[0]
			return nil
		})
		return n, err
	}
	const some, want = "SELECT sum(range)::BIGINT FROM range(3000000) WHERE hash(range) IS NOT NULL", 3_000_000 * 2_999_999 / 2
	n, err := sum(some)
	require.NoError(t, err)
	require.EqualValues(t, want, n)
	n, err = sum(fmt.Sprintf("SELECT sum(length(%s))::BIGINT FROM range(3)", growing(6)))
	require.NoError(t, err)
	require.EqualValues(t, 3_000_000, n)
	require.False(t, g.Exceeded())

	_, err = sum(fmt.Sprintf("SELECT sum(length(%s))::BIGINT FROM range(2000)", growing(6)))
	var failed *duck.Error
	require.True(t, errors.As(err, &failed), "%v", err)
	require.False(t, failed.Internal, "%v", err)
	require.True(t, g.Exceeded())
	n, err = sum(some)
	require.NoError(t, err, "what the statement held is free")
	require.EqualValues(t, want, n)

	g.Stop()
	_, err = sum(fmt.Sprintf("SELECT sum(length(%s))::BIGINT FROM range(3)", growing(6)))
	require.True(t, errors.As(err, &failed), "%v", err)
}
