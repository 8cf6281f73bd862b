package rollup_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

const schemas = "../../../schemas"

// written returns rollups of a few series of every kind.
func written(t *testing.T) memFiles {
	t.Helper()
	files := memFiles{}
	w, err := rollup.NewFullWriter(files)
	require.NoError(t, err)
	for i, name := range []string{"counter of whole numbers", "gauge of decimals", "all kinds", "mostly stale"} {
		s := randomSeries(rand.New(rand.NewPCG(1, uint64(i))), 1_772_496_000_000, 2000, values[name])
		require.NoError(t, w.Append(strings.ReplaceAll(name, " ", "_"), uint64(i), s.ts, s.v, nil))
	}
	_, err = w.Close()
	require.NoError(t, err)
	return files
}

func TestSchemaIsAsSpecified(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(schemas, "rollup.schema.txt"))
	require.NoError(t, err)
	for name, f := range written(t) {
		file, err := parquet.OpenFile(bytes.NewReader(f.Bytes()), int64(f.Len()))
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(want)), file.Schema().String(), name)
	}
}

// TestSQLView asks DuckDB for every row through the documented macro and compares it with a Window
// of that row.
func TestSQLView(t *testing.T) {
	files := written(t)
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	macros, err := os.ReadFile(filepath.Join(schemas, "sql/rollups.sql"))
	require.NoError(t, err)
	_, err = db.Exec(string(macros))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "r.parquet")
	require.NoError(t, os.WriteFile(path, files["rollup-5m.parquet"].Bytes(), 0o644))
	rows, err := db.Query(fmt.Sprintf(`SELECT metric, series_id, epoch_ms(bucket), count, first, last, min, max, sum, avg, increase, resets, changes, nans,
		epoch_ms(first_ts), epoch_ms(last_ts), stale, coalesce(epoch_ms(stale_ts), 0) FROM promlake_rollup('%s')`, path))
	require.NoError(t, err)
	defer rows.Close()
	for _, want := range files.read(t, "rollup-5m.parquet") {
		require.True(t, rows.Next())
		var (
			got           rollup.Record
			v             [7]sql.NullFloat64
			firstT, lastT sql.NullInt64
			win           rollup.Window
		)
		require.NoError(t, rows.Scan(&got.Metric, &got.SeriesID, &got.Bucket, &got.Count, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
			&got.Resets, &got.Changes, &got.NaNs, &firstT, &lastT, &got.Stale, &got.StaleT))
		win.Add(want.Row)
		require.Equal(t, want.Count > 0, firstT.Valid)
		if want.Count > 0 {
			sum, _ := win.Sum()
			avg, _ := win.Avg()
			gain, _ := win.Increase()
			for i, f := range []float64{want.First, want.Last, want.Min, want.Max, sum, avg, gain} {
				require.True(t, v[i].Valid)
				require.True(t, f == v[i].Float64 || math.IsNaN(f) && math.IsNaN(v[i].Float64), "column %d of %v: %v, want %v", i, want, v[i].Float64, f)
			}
		}
		want.Row = rollup.Row{
			Bucket: want.Bucket, Count: want.Count, Resets: want.Resets, Changes: want.Changes, NaNs: want.NaNs,
			FirstT: want.FirstT, LastT: want.LastT, Stale: want.Stale, StaleT: want.StaleT,
		}
		got.FirstT, got.LastT = firstT.Int64, lastT.Int64
		require.Equal(t, want, got)
	}
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
}
