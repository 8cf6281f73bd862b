package archtest

import (
	"fmt"
	"maps"
	"slices"
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

// TestKinds checks the rules that the table itself must obey too. They also apply to tests, so that
// a noun's tests import no verb.
func TestKinds(t *testing.T) {
	g := readGraph(t)
	for _, imports := range []map[string][]string{g.code, g.tests} {
		for _, offence := range misdirected(imports) {
			t.Error(offence)
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

// misdirected lists the imports of verbs by packages that must not know them.
func misdirected(imports map[string][]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if _, ok := within(name, composes); ok {
			continue
		}
		self, isVerb := within(name, verbs)
		_, isNoun := within(name, nouns)
		for _, p := range imports[name] {
			verb, ok := within(p, verbs)
			switch {
			case !ok || isVerb && verb == self:
			case isVerb:
				out = append(out, fmt.Sprintf("verb %s imports verb %s", name, p))
			case isNoun:
				out = append(out, fmt.Sprintf("noun %s imports verb %s", name, p))
			default:
				out = append(out, fmt.Sprintf("package %s imports verb %s, which only the composition may", name, p))
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
	for _, tc := range []struct {
		from, to string
		want     []string
	}{
		{"internal/segment", "internal/series", nil},
		{"internal/ingest", "internal/segment", nil},
		{"internal/query", "internal/query/duck", nil},
		{"internal/app/queryapp", "internal/query/api", nil},
		{"query-fn", "internal/query", nil},
		{"internal/queryable", "internal/key", nil},
		{"internal/objstore/s3store", "internal/ingest", []string{"noun internal/objstore/s3store imports verb internal/ingest"}},
		{"internal/query/duck", "internal/ingest", []string{"verb internal/query/duck imports verb internal/ingest"}},
		{"internal/demo", "internal/query", []string{"package internal/demo imports verb internal/query, which only the composition may"}},
	} {
		assert.Equal(t, tc.want, misdirected(map[string][]string{tc.from: {tc.to}}), "%s → %s", tc.from, tc.to)
	}
}
