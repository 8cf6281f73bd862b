package sql

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/livetest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestSQLViews runs the published SQL in a plain DuckDB over segments whose columns differ.
func TestSQLViews(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{})
	l.Write(tenant.Default, []segment.Row{
		{Labels: labels.FromStrings("__name__", "up", "job", "node"), Floats: []segment.Float{{T: 1000, V: 1}, {T: 2000, V: 2}}},
		{Labels: labels.FromStrings("__name__", "lat", "Zone", "eu"), Hists: []segment.Hist{{T: 1000, H: tsdbutil.GenerateTestHistogram(1)}}},
	})
	l.Write(tenant.Default, []segment.Row{
		{Labels: labels.FromStrings("__name__", "up", "job", "node"), Floats: []segment.Float{{T: 2000, V: 3}, {T: 3000, V: 4}}},
		{
			Labels: labels.FromStrings("__name__", "up", "job", "node", "az", "a"), Floats: []segment.Float{{T: 1000, V: 9}},
			Exemplars: []exemplar.Exemplar{{Ts: 1000, HasTs: true, Value: 5, Labels: labels.FromStrings("trace", "x")}},
		},
	})
	l.Write(tenant.Default, []segment.Row{{Labels: labels.FromStrings("__name__", "bare"), Floats: []segment.Float{{T: 5, V: 1}}}})

	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1) // an in-memory database
	script, err := os.ReadFile(filepath.Join("..", "..", "schemas", "sql", "segments.sql"))
	require.NoError(t, err)
	_, err = db.Exec(string(script))
	require.NoError(t, err)

	files := "'" + filepath.Join(store.Path, "v1", tenant.Default, "segments", "*", "*.parquet") + "'"
	for _, tc := range []struct{ name, sql, want string }{
		{
			"samples", `SELECT string_agg(metric || ' ' || epoch_ms(ts) || ' ' || value, ', ' ORDER BY metric, ts, value) FROM promlake_samples(` + files + `)`,
			"bare 5 1.0, up 1000 1.0, up 1000 9.0, up 2000 3.0, up 3000 4.0",
		},
		{
			"series", `SELECT string_agg(metric || ' ' || coalesce(l_job, '') || ' ' || coalesce(l_az, '') || ' ' || coalesce(labels['Zone'], ''), ', ' ORDER BY metric, l_az) FROM promlake_series(` + files + `)`,
			"bare   , lat   eu, up node  , up node a ",
		},
		{
			"join", `SELECT string_agg(value, ', ') FROM promlake_samples(` + files + `) JOIN promlake_series(` + files + `) USING (metric, series_id) WHERE l_az = 'a'`,
			"9.0",
		},
		{"histograms", `SELECT string_agg(metric || ' ' || epoch_ms(ts) || ' ' || count || ' ' || sum, ', ') FROM promlake_histograms(` + files + `)`, "lat 1000 21.0 36.8"},
		{"exemplars", `SELECT string_agg(metric || ' ' || epoch_ms(ts) || ' ' || value || ' ' || labels, ', ') FROM promlake_exemplars(` + files + `)`, `up 1000 5.0 {"trace":"x"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got string
			require.NoError(t, db.QueryRow(tc.sql).Scan(&got))
			require.Equal(t, tc.want, got)
		})
	}
	t.Run("files without labels", func(t *testing.T) {
		var n int
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM promlake_series([f FOR f IN [`+files+`]])`).Scan(&n))
		require.Equal(t, 4, n)
	})
}

// TestSQLAnswersTheLiveCases writes the objects of every case of package live as segments, whose
// names are in the opposite order of their times, and as messages of the queue, and holds the macro
// against the answers without deletions.
func TestSQLAnswersTheLiveCases(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "schemas", "sql", "segments.sql"))
	require.NoError(t, err)
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1) // an in-memory database
	_, err = db.Exec(string(script))
	require.NoError(t, err)
	for _, c := range livetest.Cases(t) {
		if c.HasHists() {
			continue // the macros count them apart
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range c.Steps {
				if s.Delete != nil {
					continue
				}
				row := segment.Row{Labels: labels.FromStrings("__name__", "m")}
				for _, at := range s.Floats {
					v := float64(i)
					if slices.Contains(s.Stale, at) {
						v = math.Float64frombits(value.StaleNaN)
					}
					row.Floats = append(row.Floats, segment.Float{T: at, V: v})
				}
				data, _, err := segmenttest.Encode([]segment.Row{row}, nil)
				require.NoError(t, err)
				at := time.UnixMilli(1_700_000_000_000).Add(time.Duration(i) * time.Minute)
				id := ulid.ULID{15: byte(100 - i)}
				if i%2 == 0 {
					require.NoError(t, id.SetTime(uint64(at.UnixMilli())))
				}
				file := filepath.Join(dir, id.String()+laketest.Pick(i%2 == 0, "-q", "")+".parquet")
				require.NoError(t, os.WriteFile(file, data, 0o600))
				if i%2 == 0 {
					at = at.Add(time.Duration(-i) * time.Hour) // says nothing
				}
				require.NoError(t, os.Chtimes(file, at, at))
			}
			rows, err := db.Query(`SELECT epoch_ms(ts), CASE WHEN isnan(value) THEN NULL ELSE value::INTEGER END FROM promlake_samples('` + filepath.Join(dir, "*.parquet") + `') ORDER BY ts`)
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			var got, want []string
			for rows.Next() {
				var at int64
				var step sql.NullInt64
				require.NoError(t, rows.Scan(&at, &step))
				got = append(got, fmt.Sprint(at, " ", laketest.Pick(step.Valid, fmt.Sprint(step.Int64), "stale")))
			}
			require.NoError(t, rows.Err())
			for _, w := range c.Undeleted {
				want = append(want, fmt.Sprint(w.T, " ", laketest.Pick(w.Kind == "stale", "stale", fmt.Sprint(w.Step))))
			}
			require.Equal(t, want, got)
		})
	}
}
