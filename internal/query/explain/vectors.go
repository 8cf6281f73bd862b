package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan"
)

const severalNames = "it drops the names of several metrics"

// kept are the labels of by, or all but those of without.
func kept(labels string, names []string, without bool) string {
	if without {
		if len(names) == 0 {
			return labels
		}
		return fmt.Sprintf("prom_without(%s, %s)", labels, texts(names))
	}
	return fmt.Sprintf("prom_by(%s, %s)", labels, texts(names))
}

func (t *translation) aggregate(e *parser.AggregateExpr, at place, ordered bool) (relation, string) {
	op, arguments, needs := e.Op.String(), "i, v", true
	switch e.Op {
	case parser.SUM, parser.AVG, parser.STDDEV, parser.STDVAR:
	case parser.MIN, parser.MAX, parser.COUNT, parser.GROUP:
		arguments, needs = "v", ordered
	case parser.QUANTILE:
		phi, ok := plan.Constant(e.Param)
		if !ok {
			return relation{}, "the parameter of quantile is not constant"
		}
		arguments = fmt.Sprintf("i, v, 'phi=%s'", plain(phi))
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK:
		k, ok := plan.Constant(e.Param)
		if !ok || !(k >= 1 && k < sideNumbers) {
			return relation{}, "the parameter of " + op + " is not a constant of 1 or more"
		}
		arguments = fmt.Sprintf("i, v, 'k=%d'", int64(k))
	default:
		return relation{}, op
	}
	in, reason := t.vector(e.Expr, at, needs)
	if reason != "" {
		return in, reason
	}
	names := slices.DeleteFunc(slices.Clone(e.Grouping), func(n string) bool { return n == model.MetricNameLabel })
	named := in.named && !e.Without && len(names) < len(e.Grouping)
	labels := kept("labels", names, e.Without)
	if e.Op == parser.TOPK || e.Op == parser.BOTTOMK || e.Op == parser.LIMITK {
		groups := ""
		if e.Without || len(e.Grouping) > 0 {
			groups = " GROUP BY " + columns(when(named, "metric"), labels)
		}
		in.name = t.add(fmt.Sprintf("SELECT %s FROM (SELECT unnest(prom_%s(%s)) AS s FROM %s%s) JOIN %[4]s ON i = s.i",
			columns(when(in.named, "metric"), "labels", "s.v AS v", when(ordered, "i")), op, arguments, in.name, groups))
		return in, ""
	}
	return relation{named: named, many: named, sides: in.sides, name: t.add(fmt.Sprintf("SELECT %s FROM %s GROUP BY ALL",
		columns(when(named, "metric"), labels+" AS labels", fmt.Sprintf("prom_%s(%s) AS v", op, arguments), when(ordered, "min(i) AS i")), in.name))}, ""
}

func (t *translation) binary(e *parser.BinaryExpr, at place, ordered bool) (relation, string) {
	if e.Op == parser.TRIM_UPPER || e.Op == parser.TRIM_LOWER {
		return relation{}, e.Op.String() + " is of native histograms"
	}
	if l, r := e.LHS.Type() == parser.ValueTypeScalar, e.RHS.Type() == parser.ValueTypeScalar; l || r {
		return t.withScalar(e, at, ordered, l)
	}
	m := e.VectorMatching
	switch {
	case m.FillValues.LHS != nil || m.FillValues.RHS != nil:
		return relation{}, "fill modifiers"
	case slices.Contains(m.MatchingLabels, model.MetricNameLabel) || slices.Contains(m.Include, model.MetricNameLabel):
		return relation{}, "it matches or includes the metric's name"
	}
	right := m.Card == parser.CardOneToMany
	l, reason := t.vector(e.LHS, at, ordered && !right)
	if reason != "" {
		return l, reason
	}
	r, reason := t.vector(e.RHS, at, ordered && (right || e.Op == parser.LOR))
	if reason != "" {
		return r, reason
	}
	key := func(side string) string { return kept(side+".labels", m.MatchingLabels, !m.On) }
	if e.Op.IsSetOperator() {
		return t.set(e, l, r, key, ordered)
	}
	many, of := l, "l"
	if right {
		many, of = r, "r"
	}
	out := relation{named: many.named && e.Op.IsComparisonOperator() && !e.ReturnBool, parts: true, sides: many.sides}
	labels := of + ".labels"
	if m.Card == parser.CardOneToOne {
		labels = key("l")
		out.named = out.named && !m.On
	} else if len(m.Include) > 0 {
		labels = fmt.Sprintf("prom_include(l.labels, r.labels, %s)", texts(m.Include))
		if right {
			labels = fmt.Sprintf("prom_include(r.labels, l.labels, %s)", texts(m.Include))
		}
	}
	if out.many = many.many && out.named; many.many && !out.named {
		return relation{}, severalNames
	}
	out.name = t.add(fmt.Sprintf("SELECT %s FROM %s l JOIN %s r ON %s = %s", columns(when(out.named, of+".metric"), labels+" AS labels",
		fmt.Sprintf("prom_binary('%s', l.v, r.v) AS v", plan.Operator(e, false)), when(ordered, of+".i")), l.name, r.name, key("l"), key("r")))
	return out, ""
}

// set translates and, or and unless. or makes no pairs: where a series of the right side has the
// labels of one of the left side, their values are at different steps.
func (t *translation) set(e *parser.BinaryExpr, l, r relation, key func(string) string, ordered bool) (relation, string) {
	in, mask, op, join := l, r, e.Op.String(), "LEFT JOIN"
	if e.Op == parser.LOR {
		in, mask, op = r, l, "unless"
	} else if e.Op == parser.LAND {
		join = "JOIN"
	}
	number := "l.i"
	if e.Op == parser.LOR && ordered {
		number = fmt.Sprintf("(l.i + %d)::UINTEGER AS i", l.sides*sideNumbers)
	}
	body := fmt.Sprintf("SELECT %s FROM %s l %s (SELECT %s AS labels, prom_group(v) AS v FROM %s m GROUP BY ALL) r ON %s = r.labels",
		columns(when(in.named, "l.metric"), "l.labels", fmt.Sprintf("prom_binary('%s', l.v, r.v) AS v", op), when(ordered, number)),
		in.name, join, key("m"), mask.name, key("l"))
	if e.Op != parser.LOR {
		in.name = t.add(body)
		return in, ""
	}
	out := relation{named: l.named || r.named, many: l.many || r.many, parts: true, sides: l.sides + r.sides}
	if out.sides > 40 {
		return relation{}, "more than 40 vectors are joined by or"
	}
	out.name = t.add(fmt.Sprintf("SELECT %s FROM %s UNION ALL BY NAME %s", columns(when(l.named, "metric"), "labels", "v", when(ordered, "i")), l.name, body))
	return out, ""
}

// withScalar translates an operator between a vector and a scalar. left: the scalar is on the left.
func (t *translation) withScalar(e *parser.BinaryExpr, at place, ordered, left bool) (relation, string) {
	vector, scalar := e.LHS, e.RHS
	if left {
		vector, scalar = scalar, vector
	}
	s, reason := t.scalar(scalar, at)
	if reason != "" {
		return relation{}, reason
	}
	l, r := "v", s.sql
	if left {
		l, r = r, l
	}
	value := fmt.Sprintf("prom_binary('%s', %s, %s)", plan.Operator(e, left), l, r)
	if vector.Type() == parser.ValueTypeScalar {
		return relation{}, "a scalar"
	}
	if !e.Op.IsComparisonOperator() || e.ReturnBool {
		return t.mapped(vector, at, ordered, value, s.from)
	}
	in, reason := t.vector(vector, at, ordered)
	if reason != "" {
		return in, reason
	}
	return t.each(in, ordered, value, s.from), ""
}

// mapped translates an expression that changes each value of a vector, and drops the metric's name.
func (t *translation) mapped(e parser.Expr, at place, ordered bool, value string, from []string) (relation, string) {
	in, reason := t.vector(e, at, ordered)
	if reason == "" && in.many {
		reason = severalNames
	}
	if reason != "" {
		return in, reason
	}
	in.named = false
	return t.each(in, ordered, value, from), ""
}

// each is a relation with other values of the same series. from has further tables.
func (t *translation) each(in relation, ordered bool, value string, from []string) relation {
	in.name = t.add(fmt.Sprintf("SELECT %s FROM %s", columns(when(in.named, "metric"), "labels", value+" AS v", when(ordered, "i")),
		strings.Join(append([]string{in.name}, from...), ", ")))
	return in
}
