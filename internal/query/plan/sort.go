package plan

import (
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
)

// compileSort compiles the functions that sort the result of an instant query. In a range query
// they only add a warning.
func compileSort(b *building, e *parser.Call, at place) (Node, string) {
	if at.grid().N == 1 {
		return nil, "the engine sorts the results"
	}
	at.unordered = true
	in, reason := b.compile(e.Args[0], at)
	if reason != "" {
		return nil, reason
	}
	warning := note{err: annotations.NewSortInRangeQueryWarning(e.PositionRange()), always: true}
	n := &labelNode{unary: unary{shaped: shaped{*in.Shape()}, in: in}, text: e.Func.Name}
	n.shape.Grid = at.grid()
	n.shape.notes = append(n.shape.notes[:len(n.shape.notes):len(n.shape.notes)], warning)
	return n, ""
}
