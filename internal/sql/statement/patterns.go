package statement

import "strings"

// likes are the operators and functions that match a pattern, with the character for any text.
// DuckDB matches most patterns by trying every position for every such character, and does not look
// for an interrupt meanwhile: a pattern with several would outlive its statement on a long text.
var likes = map[string]struct {
	any    byte
	simple bool // without a character for any character, DuckDB searches for the parts one after the other
}{
	"~~": {'%', true}, "!~~": {'%', true}, "~~*": {'%', false}, "!~~*": {'%', false}, "~~~": {'*', false},
	"like_escape": {'%', false}, "not_like_escape": {'%', false}, "ilike_escape": {'%', false}, "not_ilike_escape": {'%', false},
}

// patterns checks the patterns of a tree, whose parameters have their values.
func patterns(tree Node) error {
	for n := range tree.All() {
		like, ok := likes[lower(n["function_name"])]
		if !ok || len(n.List("children")) < 2 {
			continue
		}
		p, ok := constantText(n.Nodes("children")[1])
		if !ok {
			return refuse("the pattern of LIKE or GLOB is not a constant; use contains, starts_with or regexp_matches")
		}
		if like.simple && !strings.ContainsRune(p, '_') {
			continue
		}
		inner, last := 0, byte(0) // runs of any text that have to be tried at each position
		for _, c := range []byte(strings.TrimRight(p, string(like.any))) {
			if c == like.any && last != c {
				inner++
			}
			last = c
		}
		if inner > 1 {
			return refuse("a pattern of LIKE with _ or ESCAPE, of ILIKE and of GLOB may have one %c within it, beside those at its end; use regexp_matches", like.any)
		}
	}
	return nil
}

// constantText returns the text of a constant, "" if it is no text, or of constants that are joined
// by ||.
func constantText(n Node) (string, bool) {
	switch operands := n.Nodes("children"); {
	case n["class"] == "CONSTANT":
		return n.Node("value").Text("value"), true
	case n["class"] == "FUNCTION" && lower(n["function_name"]) == "||" && len(operands) == 2:
		a, first := constantText(operands[0])
		b, second := constantText(operands[1])
		return a + b, first && second
	}
	return "", false
}
