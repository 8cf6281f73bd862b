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
func (s *Statement) MakesMaps() bool {
	for n := range s.tree.All() {
		if named(n, makers) || slices.Contains(mapTypes, n.Text("id")) {
			return true
		}
	}
	return false
}

// named reports whether a node is a call of a function whose name has one of some parts.
func named(n Node, parts []string) bool {
	name := lower(n["function_name"])
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}
