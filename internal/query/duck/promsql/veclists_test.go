package promsql_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListsPassThrough pins what statements rely on: which operators of DuckDB hand lists on bit
// for bit, and which pass them through a sort key that knows one NaN and one zero, so that absent
// values become NaN. Statements keep clear of those.
func TestListsPassThrough(t *testing.T) {
	db := openVec(t, 2)
	want := []float64{gone, math.Copysign(0, -1), math.Float64frombits(0xfff8000000000123), math.SmallestNonzeroFloat64}
	vecWorld{{name: "m", id: "a", v: want}}.table(t, db, "m")
	same := func(sql string) bool {
		t.Helper()
		got := vecLists(t, db, sql)[""]
		require.Len(t, got, len(want), sql)
		for k := range want {
			if math.Float64bits(got[k]) != math.Float64bits(want[k]) {
				return false
			}
		}
		return true
	}
	for _, sql := range []string{
		"SELECT '', a.v FROM m a JOIN m b USING (i)",
		"SELECT '', a.v FROM m a LEFT JOIN m b ON a.i = b.i + 1",
		"SELECT '', b.v FROM m a FULL JOIN m b USING (i)",
		"SELECT '', a.v FROM (SELECT v FROM m) a, (SELECT v FROM m) b",
		"SELECT '', v FROM m UNION ALL SELECT 'other', v FROM m",
		"SELECT '', v FROM m ORDER BY i",
		"SELECT '', v FROM m ORDER BY i LIMIT 1",
		"WITH x AS MATERIALIZED (SELECT i, v FROM m) SELECT '', x.v FROM x JOIN x y USING (i)",
		"SELECT '', CASE WHEN i = 0 THEN v END FROM m",
		"SELECT '', v FROM m WHERE v IS NOT NULL AND i = 0",
		"SELECT '', c.v FROM (SELECT unnest(prom_topk(i, v, 'k=1 n=4')) AS c FROM m)",
		"SELECT '', list(v)[1] FROM m",
		"SELECT '', prom_unpack((SELECT prom_pack(v) FROM m))",
	} {
		require.True(t, same(sql), sql)
	}
	for _, sql := range []string{
		"SELECT '', (SELECT v FROM m)",
		"SELECT '', first(v) FROM m",
		"SELECT '', any_value(v) FROM m",
		"SELECT '', max(v) FROM m",
		"SELECT '', v FROM m ORDER BY v",
	} {
		require.False(t, same(sql), "%s: it does now, so statements may use it", sql)
	}
}

// TestPack has constants for many rows, lists of several lengths, and NULLs between them.
func TestPack(t *testing.T) {
	db := openVec(t, 2)
	vecExec(t, db, "CREATE TABLE m AS SELECT i, CASE WHEN i % 3 > 0 THEN list_resize([i::DOUBLE], 1 + i % 5, 7.5) END AS v FROM range(5000) t(i)")
	want := vecLists(t, db, "SELECT i::VARCHAR, v FROM m")
	require.Len(t, want, 3333)
	require.Equal(t, want, vecLists(t, db, "SELECT i::VARCHAR, prom_unpack(prom_pack(v)) FROM m"))
	sums := vecLists(t, db, "SELECT i::VARCHAR, prom_binary('+', v, prom_unpack((SELECT prom_pack(v) FROM m WHERE i = 40))) FROM m WHERE i % 5 = 0 AND i % 3 > 0")
	require.Len(t, sums, 666)
	for key, list := range sums {
		require.Equal(t, []float64{want[key][0] + 40}, list, key)
	}
	constant := vecLists(t, db, "SELECT i::VARCHAR, prom_unpack((SELECT prom_pack(v) FROM m WHERE i = 49)) FROM m")
	require.Len(t, constant, 5000)
	for key, list := range constant {
		require.Equal(t, []float64{49, 7.5, 7.5, 7.5, 7.5}, list, key)
	}
	require.Empty(t, vecLists(t, db, "SELECT '', prom_unpack((SELECT prom_pack(v) FROM m WHERE i = 0))"))
	require.Empty(t, vecLists(t, db, "SELECT '', prom_unpack((SELECT prom_pack(v) FROM m WHERE i < 0))"))
	require.ErrorContains(t, vecError(t, db, "SELECT prom_unpack('abc'::BLOB)"), "3 bytes are no list")
}
