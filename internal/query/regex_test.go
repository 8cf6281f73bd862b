package query

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
)

// TestPortableRegexps matches many values by many patterns, in DuckDB and in Go.
func TestPortableRegexps(t *testing.T) {
	atoms := []string{"a", "b", "ab", ".", `\d`, `\w`, `\s`, "[a-c]", "[^a]", "(?i:k)", "(?i:ab)", "(a|b)", "(|a)", "(?-s:.)", "\n", `\p{Greek}`, "é", "日", `\.`, "^", "$", `\A`, `\z`, "(?:)", "'", `\x{1F642}`, `[\x00-\x20]`, "_", "%"}
	suffixes := []string{"", "", "", "*", "+", "?", "{2}", "{1,3}", "{0}", "*?", "+?"}
	values := []string{"", "a", "b", "ab", "aab", "aaa", "ba", "A", "AB", "K", "\u212a", "k", "a\nb", "\n", "a\n", "\na", "é", "e\u0301", "日本", "🙂", "'", "1", "12", "a1", "_", "%", "a.b", " ", "\x00", "a\x00", "\t"}
	rng := rand.New(rand.NewPCG(7, 7))
	var patterns []string
	for range 1500 {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteString(atoms[rng.IntN(len(atoms))] + suffixes[rng.IntN(len(suffixes))])
			if rng.IntN(6) == 0 {
				b.WriteByte('|')
			}
		}
		patterns = append(patterns, b.String())
	}
	db := duck.New(duck.Settings{MemoryLimitBytes: 256 << 20, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil }})
	defer func() { require.NoError(t, db.Close()) }()
	create := "CREATE TEMP TABLE v AS SELECT * FROM (VALUES (" + strings.Join(quoted(values), "), (") + ")) v(s)"
	require.NoError(t, db.Each(t.Context(), create, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }))
	compared := 0
	for _, p := range patterns {
		m, err := labels.NewMatcher(labels.MatchRegexp, "x", p)
		if err != nil {
			continue // not valid, so never asked
		}
		re, ok := portable(p)
		require.True(t, ok, "pattern %q is made of portable pieces", p)
		err = db.Each(t.Context(), "SELECT s, regexp_full_match(s, "+duck.Literal(re)+") FROM v", []string{duck.Varchar, duck.Bool}, func(n int, c []duck.Vector) error {
			for i := range n {
				s := c[0].Strings()[i].String()
				require.Equal(t, m.Matches(s), c[1].Bools()[i], "pattern %q as %q on %q", p, re, s)
				compared++
			}
			return nil
		})
		require.NoError(t, err, "pattern %q as %q", p, re)
	}
	require.Greater(t, compared, 30000)
}

func quoted(ss []string) []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = duck.Literal(s)
	}
	return out
}

func TestNotPortable(t *testing.T) {
	for _, p := range []string{
		`\ba`, `a\B`, `(?m)^a`, `(?m)a$`, `(?i)é`, `(?i)straße`, `[^\x00-\x{10FFFF}]`, "(", "a{1000}{1000}",
		"((a{50}){50}){2}", strings.Repeat("a", maxPatternBytes), `\pL+`,
	} {
		_, ok := portable(p)
		require.False(t, ok, p)
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		typ         labels.MatchType
		value, want string
	}{
		{labels.MatchEqual, "it's", `x = 'it''s'`},
		{labels.MatchNotEqual, "", `x <> ''`},
		{labels.MatchRegexp, ".*", ``},
		{labels.MatchRegexp, ".+", `x <> ''`},
		{labels.MatchNotRegexp, ".+", `x = ''`},
		{labels.MatchRegexp, "b|a", `x IN ('a', 'b')`},
		{labels.MatchNotRegexp, "b|a", `x NOT IN ('a', 'b')`},
		{labels.MatchRegexp, "ab.*", `(starts_with(x, 'ab') AND regexp_full_match(x, '(?:(?:\x{61}\x{62})(?:(?s:.))*)'))`},
		{labels.MatchNotRegexp, "[ab]+", `NOT regexp_full_match(x, '(?:[\x{61}-\x{62}])+')`},
	} {
		got, ok := compare("x", labels.MustNewMatcher(tc.typ, "l", tc.value))
		require.True(t, ok)
		require.Equal(t, tc.want, got)
	}
}
