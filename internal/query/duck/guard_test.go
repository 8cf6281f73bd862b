package duck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
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
	g, err := duck.NewGuard(64<<20, 64<<20)
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
		err = db.Each(t.Context(), statement, nil, []string{duck.BigInt}, func(_ int, c []duck.Vector) error {
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

// grown nests or chains n copies of a part, each of which mentions the one before (%[1]s, or a[i-1])
// twice, so that what DuckDB makes of the whole doubles with each.
var grown = map[string]func(n int) string{
	"joined queries": ctes("SELECT l.x FROM a%[1]d l JOIN a%[1]d r USING (x)"),
	"united queries": ctes("FROM a%[1]d UNION ALL FROM a%[1]d"),
	"columns":        ctes("SELECT *, * FROM a%[1]d"),
	"joined columns": ctes("SELECT * FROM a%[1]d l, a%[1]d r"),
	"conditions":     ctes("SELECT x IN (1, 2) OR x IS NULL AS x FROM a%[1]d WHERE x"),
	"aliases":        func(n int) string { return "SELECT 1 AS a0" + repeated(n, ", a%[1]d + a%[1]d AS a%[2]d") },
	"cases":          nested("CASE %s WHEN 1 THEN 1 WHEN 2 THEN 2 END"),
	"macros":         nested("nullif(%s, 7)"),
	"ranges":         nested("(%s BETWEEN false AND true)"),
	"lists of lists": nested("list_transform([1, 2], lambda x: %s)[1]"),
}

func repeated(n int, part string) (out string) {
	for i := range n {
		out += fmt.Sprintf(part, i, i+1)
	}
	return out
}

func ctes(part string) func(n int) string {
	return func(n int) string {
		return "WITH a0 AS (SELECT 1 AS x)" + repeated(n, ", a%[2]d AS NOT MATERIALIZED ("+part+")") + fmt.Sprintf(" FROM a%d", n)
	}
}

func nested(part string) func(n int) string {
	return func(n int) string {
		e := "range"
		for range n {
			e = fmt.Sprintf(part, e)
		}
		return "SELECT " + e + " FROM range(3)"
	}
}

// TestGuardOfPlans: a guard ends a planning that allocates more than its limit, wherever it is then,
// and one that goes on after Stop. The database answers other statements afterwards.
func TestGuardOfPlans(t *testing.T) {
	for name, of := range grown {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 24} {
				for _, limit := range []int64{1 << 20, 2_345_678, 8 << 20} {
					ends(t, of(n), n > 2, limit, func(*duck.Guard) {})
				}
			}
			ends(t, of(24), true, 1<<60, (*duck.Guard).Stop)
		})
	}
}

// ends plans a statement in each of DuckDB's ways, with a guard that may be stopped before.
func ends(t *testing.T, text string, refused bool, limit int64, stop func(*duck.Guard)) {
	t.Helper()
	g, err := duck.NewGuard(1<<30, limit)
	require.NoError(t, err)
	leave := g.Enter()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 256 << 20, Threads: 2, Connections: 1, Guard: g,
		TempDir: func() (string, error) { return t.TempDir(), nil },
	})
	defer func() {
		require.NoError(t, db.Close())
		leave()
		g.Close()
	}()
	require.NoError(t, db.Open())
	stop(g)
	_, err = db.Text(t.Context(), "SELECT json_serialize_sql("+duck.Literal(text)+")::VARCHAR")
	if err != nil {
		require.ErrorContains(t, err, "Out of Memory")
	}
	answer, err := db.Text(t.Context(), "SELECT json_serialize_plan("+duck.Literal(text)+", optimize := true)::VARCHAR")
	require.Equal(t, refused, err != nil || strings.Contains(string(answer[:min(len(answer), 100)]), "Allocation failure"), "%v %.200s", err, answer)
	rows, err := db.Stream(t.Context(), "EXPLAIN "+text)
	if refused {
		require.ErrorContains(t, err, "Out of Memory")
	} else {
		require.NoError(t, err)
		rows.Close()
	}
	require.Equal(t, refused && limit < 1<<60, g.Planned())
	answer, err = db.Text(t.Context(), "SELECT 'yes'")
	require.NoError(t, err)
	require.Equal(t, "yes", string(answer))
}
