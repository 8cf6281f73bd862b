package expression_test

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/expression"
)

func TestCheck(t *testing.T) {
	l := expression.Limits{MaxBytes: 2000, MaxDepth: 10}
	repeat := strings.Repeat
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"empty":                           {"", true},
		"brackets at the limit":           {repeat("(", 10) + "1" + repeat(")", 10), true},
		"brackets":                        {repeat("(", 11) + "1" + repeat(")", 11), false},
		"brackets that do not close":      {repeat("(", 11), false},
		"brackets that do not open":       {repeat(")", 100), true},
		"calls":                           {repeat("ln(", 11) + "x" + repeat(")", 11), false},
		"mixed brackets":                  {repeat("(x[{", 4), false},
		"siblings":                        {"(" + repeat("(x),", 400) + "x)", true},
		"arguments with operators":        {"f(" + repeat("1+1+1+1+1,", 100) + "1)", true},
		"chain at the limit":              {"1" + repeat("-1", 10), true},
		"chain":                           {"1" + repeat("-1", 11), false},
		"chain of words":                  {"x" + repeat(" or x", 11), false},
		"chain of words in upper case":    {"x" + repeat(" UNLESS x", 11), false},
		"chain of atan2":                  {"x" + repeat(" atan2 x", 11), false},
		"chain of comparisons":            {"x" + repeat(" == x", 10), true},
		"too long a chain of comparisons": {"x" + repeat(" >= x", 11), false},
		"chain around brackets":           {"(x)" + repeat("+(x)", 9), true},
		"too long around brackets":        {"(x)" + repeat("+(x)", 11), false},
		"chain before brackets":           {"1" + repeat("-1", 6) + "-((((1))))", false},
		"unary":                           {repeat("-", 11) + "1", false},
		"unary with blanks":               {repeat("- \n", 11) + "1", false},
		"subqueries of subqueries":        {"x" + repeat("[1h:1m]", 11), false},
		"matchers":                        {"x{" + repeat(`a="b",`, 300) + "}", true},
		"in strings":                      {`x{a="` + repeat("(", 50) + `",b='` + repeat("-", 50) + "',c=`" + repeat("[", 50) + "`}", true},
		"escaped quotes":                  {`x{a="\"` + repeat("(", 50) + `"}`, true},
		"a raw string has no escapes":     {"x{a=`\\`}" + repeat("(", 11), false},
		"after a string":                  {`"(" + ` + repeat("(", 11), false},
		"in comments":                     {"x # " + repeat("(", 50) + "\n+ 1", true},
		"after comments":                  {"# \"\r" + repeat("(", 11), false},
		"names with operators in them":    {repeat("(", 9) + "band_or_or:and.or", true},
		"too long":                        {repeat("x", 2001), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.Check(tc.text)
			if tc.ok {
				require.NoError(t, err)
				return
			}
			var typed *expression.Error
			require.ErrorAs(t, err, &typed)
			require.Contains(t, err.Error(), typed.Flag)
			require.Greater(t, typed.Needed, typed.Value)
		})
	}
}

func TestTextsOfARequestCountTogether(t *testing.T) {
	l := expression.Limits{MaxBytes: 10}
	require.NoError(t, l.Check("12345", "12345"))
	require.EqualError(t, l.Check("12345", "123456"),
		"expression exceeds the limit of 10 bytes, it has at least 11; write it shorter, or raise --query.max-expression-bytes")
}

// TestPatternsAreBoundedAsTheyAreCompiled: without a limit, 64 KiB of patterns would compile to
// gigabytes of programs.
func TestPatternsAreBoundedAsTheyAreCompiled(t *testing.T) {
	l := expression.Limits{}
	for text, ok := range map[string]bool{
		`{id=~"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"}`: true,
		`{ip=~"([0-9]{1,3}\\.){3}[0-9]{1,3}"}`:                                 true,
		`{a=~"` + strings.Repeat("x|", 30_000) + `"}`:                          true,
		`{a=~"(` + strings.Repeat("x", 900) + `){1000}"}`:                      true,
		`{a=~"(` + strings.Repeat("x", 1100) + `){1000}"}`:                     false,
		`{a=~"((` + strings.Repeat("x", 1100) + `){,100}){10,}"}`:              false,
		strings.Repeat(`{a=~"(`+strings.Repeat("x", 500)+`){1000}"} or `, 3):   false,
		`{a=~"` + strings.Repeat("x", 1100) + `{{1000}"}`:                      false,
		`{a=~"(` + strings.Repeat("x", 1100) + `)\x7b1000}"}`:                  false,
		`{a=~"` + strings.Repeat(`\\pL`, 9_000) + `"}`:                         false,
		`{a=~"` + strings.Repeat(`\\pL`, 4_000) + `"}`:                         true,
		`{a=~"(?i)` + strings.Repeat(`[b-\\x{1e942}]`, 40) + `"}`:              false,
		`{a=~"(?i)` + strings.Repeat(`[b-\U0001e942]`, 40) + `"}`:              false,
		`{a=~"(?i)` + strings.Repeat(`[a-z]-\\d`, 20) + `"}`:                   true,
		"# \" {1000}\n" + `{a="` + strings.Repeat("x", 2000) + `"}`:            true,
	} {
		err := l.Check(text)
		require.Equal(t, ok, err == nil, "%.80s: %v", text, err)
		pattern := strings.TrimSuffix(strings.TrimPrefix(text, `{a=~"`), `"}`)
		if len(pattern) < len(text)-5 && !strings.Contains(pattern, `\x7b`) { // one string of one selector
			err = l.CheckPatterns(pattern)
			require.Equal(t, ok, err == nil, "%.80s: %v", pattern, err)
		}
	}
	require.Error(t, l.CheckPatterns(strings.Repeat(".*", 200_000)))
	require.Error(t, l.CheckPatterns(strings.Repeat("a", 200_000), strings.Repeat("a", 200_000)), "all patterns of a request count together")
}

// height returns the height of a tree; a leaf has 1.
func height(n parser.Node) int {
	most := 0
	for c := range parser.ChildrenIter(n) {
		most = max(most, height(c))
	}
	return most + 1
}

// FuzzDepth: the tree of a text that passes the limit is not higher than the limit, apart from a
// leaf and what a selector adds.
func FuzzDepth(f *testing.F) {
	for _, s := range []string{"1-1-1", "((x))", "--x", "sum by (a) (rate(x{a=~`b`}[5m:1m] offset 1h))", "x[1h:][1h:]", "a or b and c unless on(x) d", "1^1^1^1", "f(1, 2+3)", "# (\n1", `"\"("`, "x </ 2 >/ 3"} {
		f.Add(s, 3)
	}
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true})
	f.Fuzz(func(t *testing.T, text string, depth int) {
		l := expression.Limits{MaxDepth: 1 + depth&63}
		if l.Check(text) != nil {
			return
		}
		expr, err := p.ParseExpr(text)
		if err != nil {
			return
		}
		require.LessOrEqual(t, height(expr), l.MaxDepth+2, text)
	})
}
