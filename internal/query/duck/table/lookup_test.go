package table_test

import (
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/table"
)

// TestLookup: a database with the lookup of labels answers as DuckDB does, for maps of texts in all
// forms.
func TestLookup(t *testing.T) {
	open := func(setup func(mapping.Connection) error) *duck.DB {
		db := duck.New(duck.Settings{MemoryLimitBytes: 256 << 20, Threads: 1, Connections: 1, Setup: setup, TempDir: func() (string, error) { return t.TempDir(), nil }})
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	plain, ours := open(nil), open(table.RegisterLookup)
	const long = "'a name that is longer than twelve bytes'"
	answers := 0
	for _, m := range []string{
		"MAP {'a': 'x', 'b': 'y'}", "MAP {" + long + ": " + long + " || '2', 'a': NULL}", "MAP {}", "NULL", "MAP {'a': NULL}",
		"map(['a', k], ['b', k || ' and ' || k])", "map_from_entries([(k, 'v'), ('q', k)])", "map_concat(MAP {'a': 'x'}, MAP {k: 'y'})",
		"CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN MAP {'a': k} ELSE MAP {k: 'a'} END", "any_value(MAP {'a': k}) OVER (ORDER BY i)",
		"(SELECT MAP {'a': 'of a subquery', " + long + ": 'z'})",
		"CASE WHEN i < 700 THEN MAP {'a': 'first', 'b': k} WHEN i < 2000 THEN MAP {'a': 'second'} ELSE MAP {'c': 'third'} END",
	} {
		for _, name := range []string{"'a'", "'b'", long, "'none'", "''", "NULL", "k", "CASE WHEN i % 5 = 0 THEN NULL WHEN i % 5 < 3 THEN 'a' ELSE k END"} {
			for _, from := range []string{"range(5000)", "(FROM range(5000) WHERE range % 2 = 1)"} {
				text := "SELECT string_agg(coalesce(v, 'NULL'), ',' ORDER BY i) FROM (SELECT i, ((" + m + ")::MAP(VARCHAR, VARCHAR))[" + name + "] AS v " +
					"FROM (SELECT range AS i, CASE WHEN range % 4 = 0 THEN 'k' || range % 7 ELSE 'another key of ' || range % 3 END AS k FROM " + from + "))"
				want, err := one(t, plain, text)
				require.NoError(t, err, text)
				got, err := one(t, ours, text)
				require.NoError(t, err, text)
				require.Equal(t, want, got, text)
				answers++
			}
		}
	}
	require.Equal(t, 12*8*2, answers)
}

func one(t *testing.T, db *duck.DB, text string) (out string, err error) {
	err = db.Each(t.Context(), text, nil, []string{duck.Varchar}, func(_ int, columns []duck.Vector) error {
		if !columns[0].Valid(0) {
			out = "NULL"
			return nil
		}
		out = string(columns[0].Strings()[0].Bytes())
		return nil
	})
	return out, err
}
