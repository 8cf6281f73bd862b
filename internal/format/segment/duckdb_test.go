package segment_test

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// sampleRows returns rows that use every feature of a segment.
func sampleRows() []segment.Row {
	stale := math.Float64frombits(value.StaleNaN)
	rows := []segment.Row{
		{
			Labels: labels.FromStrings("__name__", "up", "job", "node", "instance", "a:9100"),
			Floats: []segment.Float{{T: 1000, V: 1}, {T: 2000, V: 0.1, ST: 500}, {T: 3000, V: stale}},
		},
		{
			Labels: labels.FromStrings("__name__", "up", "job", "node", "instance", "b:9100", "Zone", "eu", "ünï", "çödé"),
			Floats: []segment.Float{{T: 1000, V: math.Inf(1)}, {T: 2500, V: math.Copysign(0, -1)}},
		},
		{
			Labels: labels.FromStrings("__name__", "rpc_seconds", "job", "api"),
			Hists: []segment.Hist{
				{T: 1500, H: tsdbutil.GenerateTestHistogram(3)},
				{T: 2500, ST: 7, FH: tsdbutil.GenerateTestFloatHistogram(4)},
				{T: 2600, FH: &histogram.FloatHistogram{Sum: math.Float64frombits(value.StaleNaN)}},
			},
			Exemplars: []exemplar.Exemplar{{Ts: 1400, HasTs: true, Value: 0.25, Labels: labels.FromStrings("trace_id", `q"1`)}},
		},
		{Labels: labels.FromStrings("job", "nameless"), Floats: []segment.Float{{T: 1, V: 42}}},
	}
	for i := range 40 {
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings("__name__", "cpu", "cpu", fmt.Sprint(i%4), "mode", fmt.Sprint(i)),
			Floats: []segment.Float{{T: 1000, V: float64(i)}, {T: 1500, V: float64(i) / 3}},
		})
	}
	return rows
}

func writeFile(t *testing.T, rows []segment.Row, meta []segment.Metadata) (string, segment.Info) {
	t.Helper()
	b, info, err := segmenttest.Encode(rows, meta)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s.parquet")
	require.NoError(t, os.WriteFile(path, b, 0o644))
	return path, info
}

func openDuckDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestDuckDBReadsEveryColumn(t *testing.T) {
	path, _ := writeFile(t, sampleRows(), nil)
	db := openDuckDB(t)
	for _, c := range []struct{ expr, where, want string }{
		{"count(*)", "true", "44"},
		{"string_agg(metric || '/' || l_mode, ',')", "l_cpu = '3' AND l_mode < '2'", "cpu/11,cpu/15,cpu/19"},
		{"ts", "l_instance = 'a:9100'", "['1970-01-01 00:00:01+00', '1970-01-01 00:00:02+00', '1970-01-01 00:00:03+00']"},
		{"epoch_ms(st[2])", "l_instance = 'a:9100'", "500"},
		{"value", "l_instance = 'a:9100'", "[1.0, 0.1, nan]"},
		{"value[1]", "l_instance = 'b:9100'", "inf"},
		{"1 / value[2]", "l_instance = 'b:9100'", "-inf"},
		{"labels", "l_instance = 'b:9100'", "{Zone=eu, ünï=çödé}"},
		{"labels", "l_instance = 'a:9100'", "{}"},
		{"h_count", "metric = 'rpc_seconds'", "[39.0, 48.0, 0.0]"},
		{"len(h)", "metric = 'rpc_seconds'", "3"},
		{"len(h_ts)", "metric = 'up'", "0"},
		{"ex_labels[1] || ex_value[1] || epoch_ms(ex_ts[1])", "metric = 'rpc_seconds'", `{"trace_id":"q\"1"}0.251400`},
		{"value[1]", "metric = '' AND l_job = 'nameless'", "42.0"},
		{"round(sum(list_sum(value)), 6)", "metric = 'cpu'", "1040.0"},
	} {
		var got string
		q := fmt.Sprintf("SET TimeZone='UTC'; SELECT CAST((SELECT %s FROM read_parquet('%s') WHERE %s LIMIT 1) AS VARCHAR)", c.expr, path, c.where)
		require.NoError(t, db.QueryRow(q).Scan(&got), c.expr)
		require.Equal(t, c.want, got, c.expr+" where "+c.where)
	}
}
