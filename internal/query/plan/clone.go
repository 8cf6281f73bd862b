package plan

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// Clone returns a deep copy of an expression as a parser returns it: without the nodes that
// preprocessing adds. Matchers and duration expressions, which nothing changes, are shared.
func Clone(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case nil:
		return nil
	case *parser.AggregateExpr:
		c := *e
		c.Expr, c.Param, c.Grouping = Clone(e.Expr), Clone(e.Param), slices.Clone(e.Grouping)
		return &c
	case *parser.BinaryExpr:
		c := *e
		c.LHS, c.RHS = Clone(e.LHS), Clone(e.RHS)
		if e.VectorMatching != nil {
			m := *e.VectorMatching
			c.VectorMatching = &m
		}
		return &c
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		for i, a := range e.Args {
			c.Args[i] = Clone(a)
		}
		return &c
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = Clone(e.VectorSelector)
		return &c
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = Clone(e.Expr)
		return &c
	case *parser.ParenExpr:
		c := *e
		c.Expr = Clone(e.Expr)
		return &c
	case *parser.UnaryExpr:
		c := *e
		c.Expr = Clone(e.Expr)
		return &c
	case *parser.StepInvariantExpr:
		return Clone(e.Expr)
	case *parser.VectorSelector:
		c := *e
		c.UnexpandedSeriesSet, c.Series = nil, nil
		return &c
	case *parser.NumberLiteral:
		return new(*e)
	case *parser.StringLiteral:
		return new(*e)
	}
	panic(fmt.Sprintf("clone of an expression of type %T", expr))
}

// Resolved returns a copy of an expression that PreprocessExpr has prepared, as a parser returns it,
// in which times and durations are numbers: what is evaluated no longer depends on the times of the
// query that it was prepared for.
func Resolved(expr parser.Expr) parser.Expr {
	own := Clone(expr)
	parser.Inspect(own, func(n parser.Node, _ []parser.Node) error {
		switch e := n.(type) {
		case *parser.VectorSelector:
			e.StartOrEnd, e.OriginalOffsetExpr = 0, nil
		case *parser.MatrixSelector:
			e.RangeExpr = nil
		case *parser.SubqueryExpr:
			e.StartOrEnd, e.OriginalOffsetExpr, e.RangeExpr, e.StepExpr = 0, nil, nil, nil
		}
		return nil
	})
	return own
}
