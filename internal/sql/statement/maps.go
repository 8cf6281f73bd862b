package statement

import (
	"slices"
	"strings"
)

// makers are parts of the names of all functions that may make maps.
var makers = []string{"histogram", "json", "map", "type"}

// mapTypes are types that are maps, or that may be.
var mapTypes = []string{"MAP", "UNBOUND", "USER", "VARIANT"}

// MakesMaps reports whether the statement may have maps other than those of its tables. It is for
// statements that Check admits.
func (s *Statement) MakesMaps() bool { return makesMaps(s.tree) }

func makesMaps(x any) bool {
	if node, ok := x.(map[string]any); ok {
		name := lower(node["function_name"])
		if slices.ContainsFunc(makers, func(part string) bool { return strings.Contains(name, part) }) || slices.Contains(mapTypes, text(node["id"])) {
			return true
		}
	}
	return slices.ContainsFunc(below(x), makesMaps)
}
