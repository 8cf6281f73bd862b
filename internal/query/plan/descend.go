package plan

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// descend rewrites the children of an expression that the engine evaluates, and returns the
// expression.
func (r *rewriter) descend(expr parser.Expr, at place, to consumer) parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		e.Expr = r.rewrite(e.Expr, at, to)
	case *parser.UnaryExpr:
		if e.Op == parser.SUB {
			to = overridesNames
		}
		e.Expr = r.rewrite(e.Expr, at, to)
	case *parser.BinaryExpr:
		to := seesNames
		if e.VectorMatching == nil && (e.ReturnBool || !e.Op.IsComparisonOperator()) {
			to = overridesNames
		}
		e.LHS, e.RHS = r.rewrite(e.LHS, at, to), r.rewrite(e.RHS, at, to)
	case *parser.AggregateExpr:
		if e.Param != nil && e.Param.Type() == parser.ValueTypeScalar {
			e.Param = r.rewrite(e.Param, at, seesNames)
		}
		in := at
		in.unordered = in.unordered || e.Op != parser.LIMITK && e.Op != parser.LIMIT_RATIO
		e.Expr = r.rewrite(e.Expr, in, aggregand(e))
	case *parser.Call:
		r.arguments(e, at)
	case *parser.SubqueryExpr:
		r.subquery(e, at, to)
	case *parser.StepInvariantExpr:
		return r.rewrite(e, at, to)
	}
	return expr
}

// subquery rewrites the expression of a subquery, which has its own grid.
func (r *rewriter) subquery(e *parser.SubqueryExpr, at place, to consumer) {
	defer func(was bool) { r.invariant = was }(r.invariant)
	r.invariant = false
	e.Expr = r.rewrite(e.Expr, at.within(e, r.b.options.DefaultSubqueryStep), to)
}

// arguments rewrites the arguments of a call.
func (r *rewriter) arguments(e *parser.Call, at place) {
	if opaque(e.Func.Name) {
		plain(e)
		return
	}
	to := argument(e.Func.Name)
	for i, a := range e.Args {
		if a.Type() == parser.ValueTypeString {
			continue
		}
		if selectorMatters(e.Func.Name) {
			if _, ok := unwrap(a).(*parser.VectorSelector); ok {
				// The call was not pushed, and the engine needs the selector itself, not its
				// values.
				e.Args[i] = unwrap(a)
				continue
			}
		}
		e.Args[i] = r.rewrite(a, at, to)
		if _, ok := e.Args[i].(*parser.VectorSelector); ok && selectorMatters(e.Func.Name) {
			// The unary plus changes no value, but keeps the function from treating the selector of
			// the pushed subtree as a selector of the query.
			e.Args[i] = &parser.UnaryExpr{Op: parser.ADD, Expr: e.Args[i], StartPos: e.Args[i].PositionRange().Start}
		}
	}
}

// plain removes what preprocessing added from an expression that stays with the engine.
func plain(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.StepInvariantExpr:
		return plain(e.Expr)
	case *parser.ParenExpr:
		e.Expr = plain(e.Expr)
	case *parser.UnaryExpr:
		e.Expr = plain(e.Expr)
	case *parser.BinaryExpr:
		e.LHS, e.RHS = plain(e.LHS), plain(e.RHS)
	case *parser.AggregateExpr:
		e.Expr = plain(e.Expr)
	case *parser.Call:
		for i, a := range e.Args {
			e.Args[i] = plain(a)
		}
	case *parser.SubqueryExpr:
		e.Expr = plain(e.Expr)
	}
	return expr
}

// selectorMatters reports whether a function treats a selector differently from other arguments.
func selectorMatters(name string) bool { return name == "absent" || name == "timestamp" }

// argument returns how a function uses the metric names of its vector.
func argument(name string) consumer {
	_, math := mathFuncs[name]
	f, ranges := rangeFuncs[name]
	switch {
	case math, ranges && !f.keepsName, name == "timestamp", name == "absent", name == "scalar":
		return overridesNames
	}
	return seesNames
}

// aggregand returns how an aggregation uses the metric names of its vector.
func aggregand(e *parser.AggregateExpr) consumer {
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO, parser.COUNT_VALUES:
		return seesNames
	}
	if e.Without {
		return seesNames // of type and unit labels, which without keeps
	}
	for _, l := range e.Grouping {
		if l == model.MetricNameLabel || l == model.MetricTypeLabel || l == model.MetricUnitLabel {
			return seesNames
		}
	}
	return overridesNames
}
