package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// groupNode aggregates the values of each group at each step.
type groupNode struct {
	unary
	titled
	op  string   // sum, avg, ...: the C aggregate is prom_<op>
	phi float64  // of quantile
	to  []uint32 // to[i] is the group of ordinal i of in
}

// compileGrouping compiles the aggregations that return one series per group.
func compileGrouping(b *building, e *parser.AggregateExpr, at place) (Node, string) {
	n := &groupNode{op: e.Op.String(), titled: titled{e.Op.String() + grouping(e)}}
	var always []note
	switch e.Op {
	case parser.SUM, parser.AVG, parser.MIN, parser.MAX, parser.COUNT, parser.GROUP, parser.STDDEV, parser.STDVAR:
	case parser.QUANTILE:
		phi, ok := Constant(e.Param)
		if !ok {
			return nil, "the parameter of quantile is not constant"
		}
		n.phi, n.text = phi, "quantile "+formatFloat(phi)+grouping(e)
		if badQuantile(phi) {
			always = []note{{err: annotations.NewInvalidQuantileWarning(phi, e.Param.PositionRange()), always: true}}
		}
	default:
		return nil, n.op + " is evaluated by the engine"
	}
	inner := at
	inner.unordered = true
	in, reason := b.compile(e.Expr, inner)
	if reason != "" {
		return nil, reason
	}
	n.in = in
	g := groups(in.Shape().Labels, e.Grouping, e.Without)
	n.to, n.shape = g.to, Shape{Grid: at.grid(), Labels: g.labels}
	if n.shape.Drop, reason = g.drops(in.Shape()); reason != "" {
		return nil, reason
	}
	if n.shape.notes, reason = in.Shape().grouped(g.to, len(g.labels)); reason != "" {
		return nil, reason
	}
	n.shape.notes = append(n.shape.notes, always...)
	return n, ""
}

// grouped is a partition of label sets.
type grouped struct {
	labels []labels.Labels // by group, in the order of the groups' first members
	to     []uint32        // to[i] is the group of label set i
}

// groups assigns label sets to the groups of an aggregation.
// Source: generateGroupingKey and generateGroupingLabels in upstream's promql/engine.go.
func groups(in []labels.Labels, by []string, without bool) grouped {
	if !slices.IsSorted(by) {
		by = slices.Sorted(slices.Values(by))
	}
	but := by
	if without {
		but = withName(by)
	}
	g, numbers, lb := grouped{to: make([]uint32, len(in))}, numbering{}, labels.NewBuilder(labels.EmptyLabels())
	var key []byte
	for i, l := range in {
		if without {
			key = l.BytesWithoutLabels(key, but...)
		} else {
			key = l.BytesWithLabels(key, by...)
		}
		o, isNew := numbers.of(key)
		if g.to[i] = o; !isNew {
			continue
		}
		lb.Reset(l)
		if without {
			lb.Del(but...)
		} else {
			lb.Keep(by...)
		}
		g.labels = append(g.labels, lb.Labels())
	}
	return g
}

// numbering numbers keys in the order in which they come first.
type numbering map[string]uint32

// of returns the number of a key, and whether the key is new.
func (n numbering) of(key []byte) (number uint32, isNew bool) {
	number, known := n[string(key)]
	if !known {
		number = uint32(len(n))
		n[string(key)] = number
	}
	return number, !known
}

// withName inserts the metric name into sorted label names.
func withName(names []string) []string {
	i, ok := slices.BinarySearch(names, model.MetricNameLabel)
	if ok {
		return names
	}
	return slices.Insert(slices.Clone(names), i, model.MetricNameLabel)
}

// drops returns, by group, whether the metric name is dropped at the end of the query. Upstream
// decides that by the members that have a value; the plan knows only the labels, so it returns a
// reason not to push if members of a group that has a name disagree.
func (g *grouped) drops(in *Shape) ([]bool, string) {
	if in.Drop == nil {
		return nil, ""
	}
	out, set := make([]bool, len(g.labels)), make([]bool, len(g.labels))
	some := false
	for i, o := range g.to {
		if !named(g.labels[o]) {
			continue
		}
		if set[o] && out[o] != in.Drop[i] {
			return nil, "whether a group has a metric name depends on its samples"
		}
		out[o], set[o] = in.Drop[i], true
		some = some || out[o]
	}
	if !some {
		return nil, ""
	}
	return out, ""
}

// grouping formats the by or without clause of an aggregation.
func grouping(e *parser.AggregateExpr) string {
	names := strings.Join(e.Grouping, ", ")
	switch {
	case e.Without:
		return " without (" + names + ")"
	case len(e.Grouping) > 0:
		return " by (" + names + ")"
	}
	return ""
}

func (n *groupNode) feeds(int) []uint32 { return n.to }

func (n *groupNode) sql(b *builder) string {
	return b.byGroup(n.to, n.value, n.in)
}

func (n *groupNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	if n.op == "quantile" {
		return vector.Quantile(n.phi, in[0], n.to, t.Memory)
	}
	return vector.Aggregate(n.op, in[0], n.to, t.Memory)
}

// value returns the SQL expression of a group's value.
func (n *groupNode) value(b *builder) string {
	if n.op == "quantile" {
		return fmt.Sprintf("prom_quantile(i, v, %s)", b.spec("phi="+formatFloat(n.phi)))
	}
	if n.ordered() {
		return fmt.Sprintf("prom_%s(i, v, %s)", n.op, b.spec(""))
	}
	return b.counted("prom_"+n.op, "v")
}

// maxOrdered is the largest number of values (series times steps) that are summed in upstream's
// order of series. That keeps all of them in memory: 8 bytes each.
const maxOrdered = 1 << 20

// ordered reports whether the values of a group are added in the order of the series, which makes
// the result equal upstream's bit by bit. A sum of more values depends in its last bits on the
// scheduling of threads. Deviations are always ordered: where values lie close together, the order
// changes more than the last bits.
func (n *groupNode) ordered() bool {
	switch n.op {
	case "stddev", "stdvar":
		return true
	case "sum", "avg":
		return len(n.to)*n.shape.Grid.N <= maxOrdered
	}
	return false
}
