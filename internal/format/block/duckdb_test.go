package block_test

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
)

// openDuckDB returns a plain DuckDB with the published macros.
func openDuckDB(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1) // an in-memory database
	script, err := os.ReadFile(filepath.Join("..", "..", "..", "schemas", "sql", "blocks.sql"))
	require.NoError(t, err)
	_, err = db.Exec("SET TimeZone = 'UTC';" + string(script))
	require.NoError(t, err)
	return db
}

// text is the only value of a query as text.
func text(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var s sql.NullString
	require.NoError(t, db.QueryRow("SELECT CAST(("+query+") AS VARCHAR)").Scan(&s), query)
	return s.String
}

// TestPublishedMacros reads a block with everything, and two blocks whose columns differ.
func TestPublishedMacros(t *testing.T) {
	files, _ := write(t, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 40}, block.Header{})
	one := files.save(t)
	files, _ = write(t, []input{{labels.FromStrings("__name__", "up", "az", "x"), block.Samples{TS: []int64{9}, V: []float64{0.5}}}}, nil, block.Options{}, block.Header{})
	two := files.save(t)
	both := filepath.Join(filepath.Dir(one), "*")
	require.Equal(t, filepath.Dir(one), filepath.Dir(two))
	db := openDuckDB(t)
	for _, tc := range []struct{ name, block, sql, want string }{
		{"samples", one, "SELECT count(*) || ' ' || sum(TRY_CAST(value AS DECIMAL(18, 3))) FILTER (metric = 'cpu') FROM promlake_block_samples('%s')", "251 4702.500"},
		{"values", one, "SELECT list(value ORDER BY ts) FROM promlake_block_samples('%s') WHERE metric = 'up' AND ts BETWEEN epoch_ms(1001) AND epoch_ms(1100)", "[0.0, nan, 12.233999999999998, 3.141592653589793, 1.152921504606847e+18]"},
		{"times", one, "SELECT min(ts) || ' ' || max(ts) FROM promlake_block_samples('%s') WHERE metric = 'cpu'", "1970-01-01 00:00:01+00 1970-01-01 00:00:10.5+00"},
		{"labels", one, "SELECT list(value ORDER BY ts) FROM promlake_block_labelled('%s') WHERE l_instance = 'a:9100'", "[1.0, 0.1, nan]"},
		{"map", one, "SELECT list(1 / value ORDER BY ts) FROM promlake_block_labelled('%s') WHERE labels['Zone'] = 'eu' AND ts < epoch_ms(1010)", "[0.0, -inf]"},
		{"series", one, "SELECT l_instance || ' ' || samples || ' ' || epoch_ms(min_ts) || ' ' || epoch_ms(max_ts) FROM promlake_block_series('%s') WHERE metric = 'up' AND l_instance = 'a:9100'", "a:9100 3 1000 3000"},
		{"histograms", one, "SELECT string_agg(metric || ' ' || epoch_ms(ts) || ' ' || count || ' ' || (sum + 0), ', ' ORDER BY ts) FROM promlake_block_histograms('%s')", "mixed 10 21.0 36.8, rpc_seconds 1500 39.0 73.6, rpc_seconds 2500 48.0 92.0, rpc_seconds 2600 0.0 nan"},
		{"exemplars", one, "SELECT string_agg(metric || ' ' || epoch_ms(ts) || ' ' || value || ' ' || labels, ', ' ORDER BY ts) FROM promlake_block_exemplars('%s')", `mixed 5 1.0 {}, mixed 6 2.0 {}, rpc_seconds 1400 0.25 {"trace_id":"q\"1"}`},
		{"metadata", one, "SELECT string_agg(metric || ' ' || type || ' ' || unit || ' ' || help, ', ') FROM promlake_block_metadata('%s')", "rpc_seconds histogram seconds Time of a call., up gauge  "},
		{"two blocks", both, "SELECT count(*) FROM promlake_block_samples('%s')", "252"},
		{"labels of two blocks", both, "SELECT list(l_az || coalesce(l_job, '-') ORDER BY ts) FROM promlake_block_labelled('%s') WHERE l_az IS NOT NULL", "[x-]"},
		{"series of two blocks", both, "SELECT count(DISTINCT block) || ' ' || count(*) FROM promlake_block_series('%s')", "2 18"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, text(t, db, fmt.Sprintf(tc.sql, tc.block)))
		})
	}
}

// TestDuckDBReadsEveryBit compares all values with what DuckDB makes of the columns, by the formula
// of the format.
func TestDuckDBReadsEveryBit(t *testing.T) {
	for seed := range uint64(4) {
		in := randomInputs(rand.New(rand.NewPCG(seed, 3)), 40, 3000)
		files, m := write(t, in, nil, block.Options{Level: key.Levels[seed], HasST: true, RowGroupRows: 20_000}, block.Header{})
		if m.Floats == 0 {
			continue
		}
		rows, err := openDuckDB(t).Query(fmt.Sprintf(`SELECT epoch_ms(ts), v_int / v_div, v_int, v_div, epoch_ms(st) FROM read_parquet('%s/samples-*.parquet')`, files.save(t)))
		require.NoError(t, err)
		for _, s := range expect(t, in) {
			for _, want := range s.floats {
				require.True(t, rows.Next())
				var ts, st, i int64
				var v, div float64
				require.NoError(t, rows.Scan(&ts, &v, &i, &div, &st))
				require.Equal(t, want, [3]uint64{uint64(ts), math.Float64bits(block.Value(i, div)), uint64(st)})
				sameButTiny(t, math.Float64frombits(want[1]), v)
			}
		}
		require.False(t, rows.Next())
		require.NoError(t, rows.Close())
	}
}

// sameButTiny holds what SQL makes of a value against it: the same bits, but that NaNs are alike,
// and that values next to 0 may be 0.
func sameButTiny(t *testing.T, want, got float64) {
	t.Helper()
	switch {
	case math.IsNaN(want) && math.IsNaN(got):
	case math.Abs(want) < 0x1p-971 && got == 0:
		require.Equal(t, math.Signbit(want), math.Signbit(got))
	default:
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v, not %v", got, want)
	}
}

// TestDuckDBDivides lets DuckDB divide the columns of values of all kinds, over the whole range of
// doubles.
func TestDuckDBDivides(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var vals []float64
	for e := -1074; e < 1024; e++ {
		p := math.Ldexp(1, e)
		vals = append(vals, p, -p, math.Nextafter(p, 0), p*math.Pi)
	}
	vals = append(vals, 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(value.StaleNaN), math.MaxFloat64, -math.MaxFloat64)
	sum := 0.0
	for i := range 4000 {
		sum += 0.01
		vals = append(vals, sum, float64(i)/3, math.Float64frombits(rng.Uint64()), float64(rng.Int64N(1e6))/1e3, float64(int64(rng.Uint64())))
	}
	var in []input
	for i := range 3 { // in order, as constants with one of them at the end, and shuffled
		for part := range slices.Chunk(vals, 500) {
			v := slices.Clone(part)
			if i == 1 {
				v = append(slices.Repeat([]float64{0.25}, 300), v[rng.IntN(len(v))])
			} else if i == 2 {
				rng.Shuffle(len(v), func(i, j int) { v[i], v[j] = vals[rng.IntN(len(vals))], v[i] })
			}
			in = append(in, input{labelsOf(len(in)), block.Samples{TS: stamps(0, 1000, len(v)), V: v}})
		}
	}
	files, _ := write(t, in, nil, block.Options{Level: key.L24h}, block.Header{})
	rows, err := openDuckDB(t).Query(fmt.Sprintf(`SELECT v_int / v_div FROM read_parquet('%s/samples-*.parquet')`, files.save(t)))
	require.NoError(t, err)
	for _, s := range expect(t, in) {
		for _, want := range s.floats {
			require.True(t, rows.Next())
			var v float64
			require.NoError(t, rows.Scan(&v))
			sameButTiny(t, math.Float64frombits(want[1]), v)
		}
	}
	require.False(t, rows.Next())
	require.NoError(t, rows.Close())
}

// mixed is adjacent series in a row group whose integers need different encodings.
func mixed() []input {
	rng := rand.New(rand.NewPCG(7, 7))
	var in []input
	for i := range 12 {
		v := make([]float64, 4000)
		for j := range v {
			v[j] = float64(j * 1000)
			if i%2 == 1 {
				v[j] = float64(rng.IntN(3)) * 987_654_321
			}
		}
		in = append(in, input{labelsOf(i), block.Samples{TS: stamps(0, 10_000, len(v)), V: v}})
	}
	return in
}

// TestDuckDBReadsMixedPages reads column chunks with pages of both encodings.
func TestDuckDBReadsMixedPages(t *testing.T) {
	in := mixed()
	files, _ := write(t, in, nil, block.Options{Level: key.L24h}, block.Header{})
	db, dir := openDuckDB(t), files.save(t)
	require.Equal(t, "PLAIN, RLE, DELTA_BINARY_PACKED", text(t, db, fmt.Sprintf("SELECT encodings FROM parquet_metadata('%s/samples-0000.parquet') WHERE path_in_schema = 'v_int'", dir)))
	for i, s := range in {
		var sum float64
		for _, v := range s.V {
			sum += v
		}
		require.Equal(t, fmt.Sprintf("%.0f", sum), text(t, db, fmt.Sprintf("SELECT CAST(sum(value) AS BIGINT) FROM promlake_block_labelled('%s') WHERE l_instance = '%04d'", dir, i)))
	}
	require.Equal(t, expect(t, in), read(t, files))
}

// TestDuckDBPrunes shows that the footers' statistics let DuckDB skip row groups by metric, series
// and time.
func TestDuckDBPrunes(t *testing.T) {
	files, m := write(t, mixed(), nil, block.Options{RowGroupRows: 4000}, block.Header{})
	require.Len(t, m.Files[0].RowGroups, 12)
	db, dir := openDuckDB(t), files.save(t)
	file := dir + "/samples-0000.parquet"
	for _, column := range []string{"metric", "series_id", "ts"} {
		require.Equal(t, "12", text(t, db, fmt.Sprintf("SELECT count(stats_min_value) FROM parquet_metadata('%s') WHERE path_in_schema = '%s'", file, column)))
	}
	id := text(t, db, fmt.Sprintf("SELECT series_id FROM promlake_block_series('%s') WHERE l_instance = '0005'", dir))
	alone := text(t, db, fmt.Sprintf("SELECT count(*) FROM parquet_metadata('%s') WHERE path_in_schema = 'series_id' AND stats_min_value = '%s' AND stats_max_value = '%s'", file, id, id))
	require.Equal(t, "1", alone)
	for where, want := range map[string]string{"series_id = " + id: "4000", "metric = 'n'": "0", "ts > TIMESTAMPTZ '1970-01-02'": "0", "ts < TIMESTAMPTZ '1970-01-01 00:00:10+00'": "12"} {
		require.Equal(t, want, text(t, db, fmt.Sprintf("SELECT count(*) FROM promlake_block_samples('%s') WHERE %s", dir, where)), where)
	}
}
