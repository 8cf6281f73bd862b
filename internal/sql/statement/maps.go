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
	switch x := x.(type) {
	case map[string]any:
		name := lower(x["function_name"])
		if slices.ContainsFunc(makers, func(part string) bool { return strings.Contains(name, part) }) || slices.Contains(mapTypes, text(x["id"])) {
			return true
		}
		for _, v := range x {
			if makesMaps(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(x, makesMaps)
	}
	return false
}
