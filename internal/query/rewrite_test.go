package query_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// truncateIDs rewrites encoded segments so that series_id keeps one bit: nearly all series collide.
func truncateIDs(t *testing.T) func(segment []byte) []byte {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return func(segment []byte) []byte {
		in, out := filepath.Join(t.TempDir(), "in.parquet"), filepath.Join(t.TempDir(), "out.parquet")
		require.NoError(t, os.WriteFile(in, segment, 0o644))
		rows, err := db.Query(fmt.Sprintf("SELECT decode(key), decode(value) FROM parquet_kv_metadata('%s')", in))
		require.NoError(t, err)
		var kv []string
		for rows.Next() {
			var k, v string
			require.NoError(t, rows.Scan(&k, &v))
			kv = append(kv, fmt.Sprintf("'%s': '%s'", k, strings.ReplaceAll(v, "'", "''")))
		}
		require.NoError(t, rows.Err())
		_, err = db.Exec(fmt.Sprintf("COPY (SELECT * REPLACE (series_id & 1 AS series_id) FROM read_parquet('%s')) TO '%s' (FORMAT parquet, KV_METADATA {%s})",
			in, out, strings.Join(kv, ", ")))
		require.NoError(t, err)
		b, err := os.ReadFile(out)
		require.NoError(t, err)
		return b
	}
}
