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
func patterns(x any) error {
	if node, ok := x.(map[string]any); ok {
		if err := pattern(node); err != nil {
			return err
		}
	}
	for _, v := range below(x) {
		if err := patterns(v); err != nil {
			return err
		}
	}
	return nil
}

func pattern(x map[string]any) error {
	like, ok := likes[lower(x["function_name"])]
	children, _ := x["children"].([]any)
	if !ok || len(children) < 2 {
		return nil
	}
	p, ok := constantText(children[1])
	if !ok {
		return refuse("the pattern of LIKE or GLOB is not a constant; use contains, starts_with or regexp_matches")
	}
	if like.simple && !strings.ContainsRune(p, '_') {
		return nil
	}
	inner := 0 // runs of any text that have to be tried at each position
	for p = strings.TrimRight(p, string(like.any)); p != ""; {
		at := strings.IndexByte(p, like.any)
		if at < 0 {
			break
		}
		inner++
		p = strings.TrimLeft(p[at:], string(like.any))
	}
	if inner > 1 {
		return refuse("a pattern of LIKE with _ or ESCAPE, of ILIKE and of GLOB may have one %c within it, beside those at its end; use regexp_matches", like.any)
	}
	return nil
}

// constantText returns the text of a constant, or of constants that are joined by ||.
func constantText(x any) (string, bool) {
	node, _ := x.(map[string]any)
	switch children, _ := node["children"].([]any); {
	case node["class"] == "CONSTANT":
		return constantOf(node), true
	case node["class"] == "FUNCTION" && lower(node["function_name"]) == "||" && len(children) == 2:
		a, first := constantText(children[0])
		b, second := constantText(children[1])
		return a + b, first && second
	}
	return "", false
}

// constantOf returns the text of a constant, "" if it is no text.
func constantOf(x any) string {
	node, _ := x.(map[string]any)
	value, _ := node["value"].(map[string]any)
	return text(value["value"])
}
