package plan

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// descend rewrites the children of an expression that the engine evaluates, and returns the
// expression: a copy, which shares what it does not rewrite.
func (r *rewriter) descend(expr parser.Expr, at place, whole bool) parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		c := *e
		c.Expr = r.rewrite(e.Expr, at, whole)
		return &c
	case *parser.UnaryExpr:
		c := *e
		c.Expr = r.rewrite(e.Expr, at, whole && e.Op == parser.ADD)
		return &c
	case *parser.BinaryExpr:
		c := *e
		c.LHS, c.RHS = r.rewrite(e.LHS, at, false), r.rewrite(e.RHS, at, false)
		return &c
	case *parser.AggregateExpr:
		c := *e
		if e.Param != nil && e.Param.Type() == parser.ValueTypeScalar {
			c.Param = r.rewrite(e.Param, at, false)
		}
		in := at
		in.unordered = in.unordered || e.Op != parser.LIMITK && e.Op != parser.LIMIT_RATIO
		c.Expr = r.rewrite(e.Expr, in, false)
		return &c
	case *parser.Call:
		if opaque(e.Func.Name) {
			return e
		}
		c := *e
		c.Args = slices.Clone(e.Args)
		for i, a := range e.Args {
			if a.Type() == parser.ValueTypeString {
				continue
			}
			if selectorMatters(e.Func.Name) {
				if _, ok := Unwrap(a).(*parser.VectorSelector); ok {
					// The call was not pushed, and the engine needs the selector itself, not its
					// values.
					c.Args[i] = Unwrap(a)
					continue
				}
			}
			c.Args[i] = r.rewrite(a, at, false)
			if _, ok := c.Args[i].(*parser.VectorSelector); ok && selectorMatters(e.Func.Name) {
				// The unary plus changes no value, but keeps the function from treating the
				// selector of the pushed subtree as a selector of the query.
				c.Args[i] = &parser.UnaryExpr{Op: parser.ADD, Expr: c.Args[i], StartPos: c.Args[i].PositionRange().Start}
			}
		}
		return &c
	case *parser.SubqueryExpr: // its expression has its own grid
		was := r.invariant
		r.invariant = false
		c := *e
		c.Expr = r.rewrite(e.Expr, at.within(e, r.b.options.DefaultSubqueryStep), whole)
		r.invariant = was
		return &c
	case *parser.StepInvariantExpr:
		return r.rewrite(e, at, whole)
	}
	return expr
}

// selectorMatters reports whether a function treats a selector differently from other arguments.
func selectorMatters(name string) bool { return name == "absent" || name == "timestamp" }
