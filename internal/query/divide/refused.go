package divide

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan"
)

// Refused returns why a range query of a parsed expression cannot be divided, "" if it can: the
// answer at each step then depends on that step alone, and on the times of the whole query.
func Refused(expr parser.Expr) (reason string) {
	refuse := func(because string) {
		if reason == "" {
			reason = because
		}
	}
	pinned, moving, subqueries := false, false, false
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch e := n.(type) {
		case *parser.VectorSelector:
			fixed := e.Timestamp != nil || e.StartOrEnd != 0
			pinned, moving = pinned || fixed, moving || !fixed
			if e.Anchored || e.Smoothed {
				refuse("anchored and smoothed selectors read samples outside of their windows")
			}
		case *parser.SubqueryExpr:
			pinned, subqueries = pinned || e.Timestamp != nil || e.StartOrEnd != 0, true
		case *parser.UnaryExpr:
			if e.Op == parser.SUB && !named(e.Expr) {
				refuse(severalNames)
			}
		case *parser.Call:
			switch {
			case e.Func.Name == "info", e.Func.Name == "label_replace", e.Func.Name == "label_join":
				refuse(e.Func.Name + "() looks at the series of all steps")
			case slices.ContainsFunc(e.Func.ArgTypes, func(t parser.ValueType) bool { return t == parser.ValueTypeMatrix }) && !named(e):
				refuse(severalNames)
			}
		case *parser.AggregateExpr:
			if e.Param != nil && e.Op != parser.COUNT_VALUES {
				if _, ok := plan.Constant(e.Param); !ok {
					refuse("the parameter of " + e.Op.String() + " is not a number")
				}
			}
			if rounds(e.Op) && !ordered(e.Expr) {
				refuse("the answer of " + e.Op.String() + " depends on the order of series, and its argument does not keep that of the store")
			}
		}
		return nil
	})
	switch {
	case !moving:
		refuse("it has the same value at each step")
	case pinned && subqueries:
		refuse("it has a subquery and the modifier @")
	}
	return reason
}

const severalNames = "it drops metric names, and its series may differ in nothing else"

// rounds reports whether the answer of an aggregation depends on the order of the series: sums are
// rounded after each one, and of equal values the first one counts.
func rounds(op parser.ItemType) bool {
	return op != parser.COUNT && op != parser.COUNT_VALUES && op != parser.GROUP && op != parser.LIMIT_RATIO
}

// ordered reports whether the series of an expression are in the order of the labels of stored
// series, whichever of these have samples. Groups, for example, are in the order of their first
// members.
func ordered(expr parser.Expr) bool {
	switch e := expr.(type) {
	case *parser.VectorSelector, *parser.MatrixSelector:
		return true
	case *parser.ParenExpr:
		return ordered(e.Expr)
	case *parser.SubqueryExpr:
		return ordered(e.Expr)
	case *parser.BinaryExpr:
		if e.RHS.Type() == parser.ValueTypeScalar {
			return ordered(e.LHS)
		}
		return e.LHS.Type() == parser.ValueTypeScalar && ordered(e.RHS)
	case *parser.Call:
		for i, t := range e.Func.ArgTypes {
			if t == parser.ValueTypeMatrix && e.Func.Name != "absent_over_time" {
				return ordered(e.Args[i])
			}
		}
	}
	return false
}

// named reports whether no two series of an expression can differ in their metric name alone. Of
// two that do, and have no step in common, upstream refuses to drop the names.
func named(expr parser.Expr) bool {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return slices.ContainsFunc(e.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual && m.Value != ""
		})
	case *parser.AggregateExpr:
		switch e.Op {
		case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
			return named(e.Expr)
		}
		return e.Without || !slices.Contains(e.Grouping, model.MetricNameLabel)
	case *parser.BinaryExpr:
		if e.Op == parser.LOR {
			return false
		}
	}
	for child := range parser.ChildrenIter(expr) {
		if !named(child.(parser.Expr)) {
			return false
		}
	}
	return true
}
