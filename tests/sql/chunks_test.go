package sql

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSQLChunks: labels are right whether a chunk of rows has one series or several, for conditions,
// groups, sorts, joins and the labels of a map.
func TestSQLChunks(t *testing.T) {
	const job = "a job whose name is long"
	var rows []segment.Row
	for i, n := range []int{1, 511, 3, 512, 513, 2048, 2, 2049, 600, 5000, 40, 40, 2560, 1} {
		l := []string{"i", fmt.Sprintf("%02d", i)}
		if i%3 > 0 {
			l = append(l, "job", job)
		}
		if i%4 == 1 {
			l = append(l, fmt.Sprintf("only_%d", i), "x")
		}
		r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", i/8), l...)}
		for k := range n {
			r.Floats = append(r.Floats, segment.Float{T: laketest.Now().UnixMilli() - int64(n-k)*1000, V: float64(i)})
		}
		rows = append(rows, r)
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Write(tenant.Default, rows)
	bits := func(v float64) string { return fmt.Sprintf("%x", math.Float64bits(v)) }
	want := func(render func(i int, r segment.Row) string) (out []string) {
		out = []string{}
		for i, r := range rows {
			if s := render(i, r); s != "" {
				out = append(out, s)
			}
		}
		slices.Sort(out)
		return out
	}
	all := func(i int, r segment.Row) string {
		return fmt.Sprintf("%s | %d | %s | %s", strings.TrimSuffix(laketest.RowOf(r.Labels, 0, 0), " | 0 | 0"), len(r.Floats), bits(float64(i)), bits(float64(i)))
	}
	require.Equal(t, want(all), l.Rows("SELECT metric, labels, count(*), min(value), max(value) FROM samples GROUP BY ALL"))
	require.Equal(t, want(all), l.Rows("SELECT metric, labels, count(*), min(value), max(value) FROM (FROM samples ORDER BY labels DESC, ts) GROUP BY ALL"))
	require.Equal(t, want(all), l.Rows("SELECT s.metric, s.labels, count(*), min(s.value), max(s.value) FROM samples s JOIN series USING (metric, labels) GROUP BY ALL"))
	byLabel := func(i int, r segment.Row) string {
		return fmt.Sprintf("%02d | %s | (null) | %d", i, map[bool]string{true: job, false: "(null)"}[r.Labels.Has("job")], len(r.Floats))
	}
	for _, text := range []string{
		"SELECT labels['i'], labels['job'], labels['none'], count(*) FROM samples GROUP BY ALL",
		"SELECT labels.i, labels.job, labels['none'], count(*) FROM samples GROUP BY ALL",
		"SELECT labels['i'], map_extract_value(labels, 'job'), labels['none'], count(*) FROM samples GROUP BY ALL",
		"SELECT i, job, labels[n], count(*) FROM (SELECT labels['i'] AS i, labels['job'] AS job, labels, CASE WHEN value > 3 THEN 'none' END AS n FROM samples) GROUP BY ALL",
		"SELECT i, job, NULL, count(*) FROM (FROM promlake_metric('m0', NULL, NULL) SELECT i, job UNION ALL FROM promlake_metric('m1', NULL, NULL) SELECT i, job) GROUP BY ALL",
	} {
		require.Equal(t, want(byLabel), l.Rows(text), text)
	}
	for condition, keep := range map[string]func(i int) bool{
		"labels['job'] = '" + job + "' OR labels['i'] = '00'": func(i int) bool { return i%3 > 0 || i == 0 },
		"length(labels['job']) > 3":                           func(i int) bool { return i%3 > 0 },
		"labels['job'] IS NULL AND metric <> 'm0'":            func(i int) bool { return i%3 == 0 && i >= 8 },
		"upper(metric) = 'M1'":                                func(i int) bool { return i >= 8 },
		"labels['i'] || metric IN ('03m0', '09m1', '11m1')":   func(i int) bool { return i == 3 || i == 9 || i == 11 },
		"labels['only_' || value::INTEGER] = 'x'":             func(i int) bool { return i%4 == 1 },
	} {
		require.Equal(t, want(func(i int, r segment.Row) string {
			if !keep(i) {
				return ""
			}
			return fmt.Sprintf("%02d | %d", i, len(r.Floats))
		}), l.Rows("SELECT labels['i'], count(*) FROM samples WHERE "+condition+" GROUP BY ALL"), condition)
	}
}

// TestSQLMaps: a statement's own maps, of any types, are what they are in DuckDB, also beside the
// labels of samples.
func TestSQLMaps(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("up", "job", "a"), Floats: []segment.Float{{T: laketest.Now().UnixMilli(), V: 1}}}})
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, expr := range []string{
		"MAP {1: 'x'}[1]", "typeof(MAP {'a': 1}['a'])", "MAP {'a': {'b': 'c'}}['a']['b']", "MAP {'a': 'x'}.a", "typeof(histogram(2.5)['2.5'])",
		"typeof((SELECT histogram('q')).q)", "typeof(('{a=1}'::MAP(VARCHAR, INTEGER))['a'])", "typeof(from_json('{\"a\": 1}', '\"MAP(VARCHAR, INTEGER)\"')['a'])",
		"typeof(map_extract_value(map_from_entries([('a', 1)]), 'a'))", "typeof(any_value(MAP {'a': [1]})['a'][1])", "typeof(cast_to_type(MAP {'a': 1}, MAP {'b': 2})['a'])",
	} {
		var want any
		require.NoError(t, db.QueryRow("SELECT "+expr).Scan(&want), expr)
		require.Equal(t, []string{fmt.Sprintf("a | %v", want)}, l.Rows("SELECT any_value(labels['job']), "+expr+" FROM samples"), expr)
	}
	found, err := db.Query("SELECT DISTINCT function_name FROM duckdb_functions() WHERE return_type LIKE '%MAP%'")
	require.NoError(t, err)
	defer func() { require.NoError(t, found.Close()) }()
	makers := 0
	for ; found.Next(); makers++ {
		var name string
		require.NoError(t, found.Scan(&name))
		require.Regexp(t, "map|histogram", name, "statement.MakesMaps does not know it")
	}
	require.NoError(t, found.Err())
	require.Positive(t, makers)
}
