package duck_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
)

func open(t *testing.T, connections int) *duck.DB {
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 256 << 20, Threads: 2, Connections: connections,
		TempDir: func() (string, error) { return t.TempDir(), nil },
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestViews(t *testing.T) {
	db := open(t, 1)
	sql := `SELECT * FROM (VALUES
		(1::UBIGINT, 7::UINTEGER, -1::BIGINT, 0.5::DOUBLE, 'short', 'a string longer than twelve bytes', [1.5::DOUBLE, 2.5]),
		(18446744073709551615::UBIGINT, 4294967295::UINTEGER, NULL, 'nan'::DOUBLE, '', NULL, [])) ORDER BY 1`
	types := []string{duck.UBigInt, duck.UInteger, duck.BigInt, duck.Double, duck.Varchar, duck.Varchar, duck.Doubles}
	rows := 0
	err := db.Each(t.Context(), sql, nil, types, func(n int, c []duck.Vector) error {
		rows += n
		require.Equal(t, []uint64{1, math.MaxUint64}, c[0].Uint64s())
		require.Equal(t, []uint32{7, math.MaxUint32}, c[1].Uint32s())
		require.Equal(t, int64(-1), c[2].Int64s()[0])
		require.True(t, c[2].Valid(0))
		require.False(t, c[2].Valid(1))
		require.Equal(t, 0.5, c[3].Float64s()[0])
		require.True(t, math.IsNaN(c[3].Float64s()[1]))
		require.Equal(t, "short", c[4].Strings()[0].String())
		require.Equal(t, "", c[4].Strings()[1].String())
		require.Equal(t, "a string longer than twelve bytes", c[5].Strings()[0].String())
		require.False(t, c[5].Valid(1))
		lists, elems := c[6].List()
		require.Equal(t, []float64{1.5, 2.5}, elems.Float64s()[lists[0].Offset:lists[0].Offset+lists[0].Length])
		require.Zero(t, lists[1].Length)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, rows)
}

func TestWrongTypesAreRefused(t *testing.T) {
	db := open(t, 1)
	for _, types := range [][]string{{duck.Varchar}, {duck.UBigInt}, {duck.BigInt, duck.BigInt}, nil} {
		_, err := db.Query(t.Context(), "SELECT 1::BIGINT", nil, types...)
		require.ErrorContains(t, err, "expected", "%v", types)
	}
	_, err := db.Query(t.Context(), "SELECT [1::INTEGER]", nil, duck.Doubles)
	require.ErrorContains(t, err, "expected DOUBLE[]")
	rows, err := db.Query(t.Context(), "SELECT 1::BIGINT", nil, duck.BigInt) // the connection is usable again
	require.NoError(t, err)
	rows.Close()
	rows.Close()
}

func TestErrors(t *testing.T) {
	db := open(t, 1)
	_, err := db.Query(t.Context(), "SELEC 1", nil)
	var derr *duck.Error
	require.ErrorAs(t, err, &derr)
	require.Equal(t, "SELEC 1", derr.SQL)
	// An error in the middle of a stream.
	err = db.Each(t.Context(), "SELECT CASE WHEN range = 900000 THEN error('midway')::BIGINT ELSE range END FROM range(1000000)", nil, []string{duck.BigInt},
		func(int, []duck.Vector) error { return nil })
	require.ErrorContains(t, err, "midway")
	stop := errors.New("enough")
	require.ErrorIs(t, db.Each(t.Context(), "SELECT range FROM range(1000000)", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return stop }), stop)
}

// endless is a statement that would run for hours.
const endless = "SELECT count(*)::BIGINT FROM range(1000000000000) a WHERE hash(a.range) = 1"

func TestCancel(t *testing.T) {
	db := open(t, 1)
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := db.Query(ctx, endless, nil, duck.BigInt)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("while running", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := db.Query(ctx, "SELECT range FROM range(1000000000000)", nil, duck.BigInt)
		require.NoError(t, err)
		require.True(t, rows.Next())
		cancel()
		for rows.Next() {
		}
		require.ErrorIs(t, rows.Err(), context.Canceled)
		rows.Close()
	})
	t.Run("without a row", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		require.ErrorIs(t, db.Each(ctx, endless, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }), context.Canceled)
	})
	t.Run("while waiting for a connection", func(t *testing.T) {
		rows, err := db.Query(t.Context(), "SELECT 1::BIGINT", nil, duck.BigInt)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, err = db.Query(ctx, "SELECT 1::BIGINT", nil, duck.BigInt)
		require.ErrorIs(t, err, context.Canceled)
		rows.Close()
	})
	require.NoError(t, db.Each(t.Context(), "SELECT 1::BIGINT", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }))
}

// TestBrokenStatementsLeaveNoConnection: only a statement whose result was read to its end leaves its
// connection to the next one, which finds the variables of the session there.
func TestBrokenStatementsLeaveNoConnection(t *testing.T) {
	db := open(t, 1)
	ask := func(ctx context.Context, sql string) error {
		return db.Each(ctx, sql, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
	}
	kept := func() (kept bool) {
		require.NoError(t, db.Each(t.Context(), "SELECT coalesce(getvariable('kept'), 0)::BIGINT", nil, []string{duck.BigInt}, func(_ int, c []duck.Vector) error {
			kept = c[0].Int64s()[0] == 1
			return nil
		}))
		return kept
	}
	for name, end := range map[string]func() error{
		"cancelled": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			return db.Each(ctx, "SELECT range FROM range(1000000000000)", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { cancel(); return nil })
		},
		"failed":       func() error { return ask(t.Context(), "SELECT error('here')::BIGINT") },
		"not bound":    func() error { return ask(t.Context(), "SELECT nothing") },
		"not expected": func() error { return ask(t.Context(), "SELECT 'text'") },
		"left": func() error {
			return db.Each(t.Context(), "SELECT range FROM range(100000)", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return errors.New("enough") })
		},
	} {
		require.NoError(t, db.With(t.Context(), func(c mapping.Connection) error {
			var res mapping.Result
			defer mapping.DestroyResult(&res)
			require.Equal(t, mapping.StateSuccess, mapping.Query(c, "SET VARIABLE kept = 1", &res))
			return nil
		}))
		require.True(t, kept(), name)
		require.True(t, kept(), name)
		require.Error(t, end(), name)
		require.False(t, kept(), name)
	}
}

func TestLazyAndClosed(t *testing.T) {
	opened := 0
	db := duck.New(duck.Settings{MemoryLimitBytes: 64 << 20, Threads: 1, Connections: 2, TempDir: func() (string, error) { opened++; return t.TempDir(), nil }})
	require.Zero(t, opened)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := db.Each(t.Context(), "SELECT 1::BIGINT", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, opened)
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
	_, err := db.Query(t.Context(), "SELECT 1", nil)
	require.ErrorIs(t, err, duck.ErrClosed)
}

func TestOpenFailureIsNotRemembered(t *testing.T) {
	dir := ""
	db := duck.New(duck.Settings{MemoryLimitBytes: 64 << 20, Threads: 1, Connections: 1, TempDir: func() (string, error) { return dir, nil }})
	defer func() { require.NoError(t, db.Close()) }()
	_, err := db.Query(t.Context(), "SELECT 1::BIGINT", nil, duck.BigInt)
	require.ErrorContains(t, err, "not absolute")
	dir = t.TempDir()
	rows, err := db.Query(t.Context(), "SELECT 1::BIGINT", nil, duck.BigInt)
	require.NoError(t, err)
	rows.Close()
}

func TestLiteral(t *testing.T) {
	db := open(t, 1)
	for _, s := range []string{"", "a", "'", "''", `\`, `\'`, "a\x00b", "\x00", "\n", "日本", "--", "/*", "$1", "?", strings.Repeat("x", 5000)} {
		sql := "SELECT " + duck.Literal(s) + ", (" + duck.Literal(s) + " IN (" + "'other', " + duck.Literal(s) + "))::BIGINT"
		err := db.Each(t.Context(), sql, nil, []string{duck.Varchar, duck.BigInt}, func(_ int, c []duck.Vector) error {
			require.Equal(t, s, c[0].Strings()[0].String())
			require.Equal(t, int64(1), c[1].Int64s()[0])
			return nil
		})
		require.NoError(t, err, "%q", s)
	}
}

// TestFileIndex pins what queries rely on: file_index is the position in the list, whatever the
// columns of the files are.
func TestFileIndex(t *testing.T) {
	db := open(t, 1)
	dir := t.TempDir()
	var list []string
	for i, cols := range []string{"3 AS n", "1 AS n, 'x' AS extra", "2 AS n", "0 AS n"} {
		path := filepath.Join(dir, string(rune('z'-i))+".parquet") // names descend: the list's order is not the names'
		rows, err := db.Query(t.Context(), "COPY (SELECT "+cols+", "+string(rune('0'+i))+"::UBIGINT AS idx FROM range(5000)) TO "+duck.Literal(path)+" (FORMAT parquet)", nil, duck.BigInt)
		require.NoError(t, err)
		rows.Close()
		list = append(list, duck.Literal(path))
	}
	seen := 0
	err := db.Each(t.Context(), "SELECT file_index, idx FROM read_parquet(["+strings.Join(list, ", ")+"], union_by_name = true) WHERE n > 0", nil, []string{duck.UBigInt, duck.UBigInt},
		func(n int, c []duck.Vector) error {
			seen += n
			require.Equal(t, c[1].Uint64s(), c[0].Uint64s())
			return nil
		})
	require.NoError(t, err)
	require.Equal(t, 15000, seen)
}

func TestArguments(t *testing.T) {
	db := open(t, 1)
	blobs := [][]byte{{}, {0, 1, 255}, []byte(strings.Repeat("long", 1<<18))}
	for _, want := range blobs {
		got := ""
		err := db.Each(t.Context(), "SELECT hex($2), octet_length($1) FROM range(1)", [][]byte{blobs[1], want}, []string{duck.Varchar, duck.BigInt}, func(_ int, c []duck.Vector) error {
			got += c[0].Strings()[0].String()
			require.Equal(t, []int64{3}, c[1].Int64s())
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%X", want), got)
	}
	for _, args := range [][][]byte{nil, {{}}, {{}, {}, {}}} {
		err := db.Each(t.Context(), "SELECT $1, $2", args, []string{duck.Varchar, duck.Varchar}, nil)
		require.ErrorContains(t, err, "a statement with 2 parameters")
	}
}

// TestSetup: it runs once, before the first statement, and its failure is that of every statement.
func TestSetup(t *testing.T) {
	calls, fail := 0, errors.New("not today")
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 256 << 20, Threads: 1, Connections: 2, TempDir: func() (string, error) { return t.TempDir(), nil },
		Setup: func(mapping.Connection) error {
			calls++
			err := fail
			fail = nil
			return err
		},
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	none := func(int, []duck.Vector) error { return nil }
	require.ErrorContains(t, db.Each(t.Context(), "SELECT 1::BIGINT", nil, []string{duck.BigInt}, none), "not today")
	for range 2 {
		require.NoError(t, db.Each(t.Context(), "SELECT 1::BIGINT", nil, []string{duck.BigInt}, none))
	}
	require.Equal(t, 2, calls)
}

func TestOutOfMemoryIsTyped(t *testing.T) {
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 8 << 20, Threads: 1, Connections: 1,
		TempBytes: 1, TempDir: func() (string, error) { return t.TempDir(), nil },
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, sql := range []string{
		"SELECT len(list(range)) FROM range(20000000)",
		"SELECT range FROM range(20000000) ORDER BY hash(range)",
	} {
		err := db.Each(t.Context(), sql, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
		var derr *duck.Error
		require.ErrorAs(t, err, &derr, sql)
		require.True(t, derr.OutOfMemory, "%s: %s", sql, derr.Message)
	}
	err := db.Each(t.Context(), "SELECT error('Out of Memory Error')::BIGINT", nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
	var derr *duck.Error
	require.ErrorAs(t, err, &derr)
	require.False(t, derr.OutOfMemory, "the text does not decide")
}
