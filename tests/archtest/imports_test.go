package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImportTable holds the code's imports against the table, in both directions.
func TestImportTable(t *testing.T) {
	for _, offence := range compare(readGraph(t).code, allowed) {
		t.Error(offence)
	}
}

// TestRooms checks the rules that the table itself must obey too. They also apply to tests, so that
// a format's tests import no stage.
func TestRooms(t *testing.T) {
	g := readGraph(t)
	// The tests of key check that stores take its keys.
	g.tests["internal/format/key"] = slices.DeleteFunc(g.tests["internal/format/key"], func(p string) bool { return p == "internal/store/objstore" })
	for _, imports := range []map[string][]string{g.code, g.tests} {
		for _, offence := range misdirected(imports) {
			t.Error(offence)
		}
	}
	for i, r := range rooms {
		for _, p := range r.may {
			require.True(t, slices.ContainsFunc(rooms[:i], func(e room) bool { return e.name == p }), "%s comes before %s", p, r.name)
		}
	}
}

// TestSupport: only tests import the packages below tests/support. Programs of tests and the
// deployment to LocalStack are tests, too.
func TestSupport(t *testing.T) {
	for _, offence := range unsupported(readGraph(t).code) {
		t.Error(offence)
	}
	require.Equal(t, []string{"package internal/x imports tests/support/s3test"}, unsupported(map[string][]string{
		"internal/x": {"internal/y", "tests/support/s3test"}, "tests/bench": {"tests/support/s3test"},
	}))
}

// unsupported lists the imports of test support by code that programs run.
func unsupported(code map[string][]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if _, ok := within(name, []string{"infra/localstack", "tests"}); ok {
			continue
		}
		for _, p := range code[name] {
			if _, ok := within(p, []string{"tests"}); ok {
				out = append(out, fmt.Sprintf("package %s imports %s", name, p))
			}
		}
	}
	return out
}

// compare lists the imports that the table does not allow, and the table's imports that the code
// does not have.
func compare(code, table map[string][]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(code)) {
		may, ok := table[name]
		if !ok {
			out = append(out, fmt.Sprintf("package %s is not in the table", name))
			continue
		}
		for _, p := range code[name] {
			if !slices.Contains(may, p) {
				out = append(out, fmt.Sprintf("package %s imports %s, which the table does not allow", name, p))
			}
		}
		for _, p := range may {
			if !slices.Contains(code[name], p) {
				out = append(out, fmt.Sprintf("package %s no longer imports %s: take it from the table", name, p))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if _, ok := code[name]; !ok {
			out = append(out, fmt.Sprintf("package %s is gone: take it from the table", name))
		}
	}
	return out
}

// room is a folder of internal, and the rooms that its packages may import.
type room struct {
	name string
	may  []string
}

// roomOf returns the room of a package, if it is in one.
func roomOf(name string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool {
		below, all := strings.CutSuffix(r.name, "*")
		return name == r.name || all && strings.HasPrefix(name, below) || r.name != "internal/query" && strings.HasPrefix(name, r.name+"/")
	})
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

// misdirected lists the imports that leave a room for one that it may not import.
func misdirected(imports map[string][]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		from, ok := roomOf(name)
		if !ok {
			if _, ok := within(name, []string{"cmd", "compact-fn", "infra", "ingest-fn", "internal/app", "query-fn", "tests", "third_party", "web"}); !ok {
				out = append(out, fmt.Sprintf("package %s is in no room", name))
			}
			continue
		}
		for _, p := range imports[name] {
			to, ok := roomOf(p)
			if _, composition := within(p, []string{"internal/app"}); composition || ok && to.name != from.name && !slices.Contains(from.may, to.name) {
				out = append(out, fmt.Sprintf("package %s imports %s, which its room may not", name, p))
			}
		}
	}
	return out
}

// TestCompareFinds shows that each kind of difference from the table is found.
func TestCompareFinds(t *testing.T) {
	table := map[string][]string{"a": {"b"}, "b": {}}
	for _, tc := range []struct {
		name string
		code map[string][]string
		want []string
	}{
		{"equal", map[string][]string{"a": {"b"}, "b": {}}, nil},
		{"new arrow", map[string][]string{"a": {"b"}, "b": {"a"}}, []string{"package b imports a, which the table does not allow"}},
		{"new package", map[string][]string{"a": {"b"}, "b": {}, "c": {}}, []string{"package c is not in the table"}},
		{"stale arrow", map[string][]string{"a": {}, "b": {}}, []string{"package a no longer imports b: take it from the table"}},
		{"stale package", map[string][]string{"a": {"b"}}, []string{"package b is gone: take it from the table"}},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, compare(tc.code, table)) })
	}
}

// TestMisdirectedFinds shows that each rule bites.
func TestMisdirectedFinds(t *testing.T) {
	refused := func(from, to string) []string {
		return []string{"package " + from + " imports " + to + ", which its room may not"}
	}
	for _, tc := range []struct {
		from, to string
		want     []string
	}{
		{"internal/format/segment", "internal/format/series", nil},
		{"internal/ingest", "internal/format/segment", nil},
		{"internal/query", "internal/query/duck", nil},
		{"internal/query", "internal/sql", nil},
		{"internal/sql/views", "internal/query/duck", nil},
		{"internal/app/queryapp", "internal/query/api", nil},
		{"query-fn", "internal/query", nil},
		{"tests/sim", "internal/query", nil},
		{"internal/store/objstore/s3store", "internal/ingest", refused("internal/store/objstore/s3store", "internal/ingest")},
		{"internal/query/duck", "internal/ingest", refused("internal/query/duck", "internal/ingest")},
		{"internal/query/duck", "internal/sql", refused("internal/query/duck", "internal/sql")},
		{"internal/query/duck", "internal/query", refused("internal/query/duck", "internal/query")},
		{"internal/rules/ruler", "internal/app", refused("internal/rules/ruler", "internal/app")},
		{"internal/queryable", "internal/format/key", []string{"package internal/queryable is in no room"}},
	} {
		assert.Equal(t, tc.want, misdirected(map[string][]string{tc.from: {tc.to}}), "%s → %s", tc.from, tc.to)
	}
}
