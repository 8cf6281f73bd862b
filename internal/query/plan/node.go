package plan

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Node is an operation of a pushed subtree: a relation (i UINTEGER, v DOUBLE[]) with one row per
// series that has a value at some step. i is the ordinal of the series in the shape; v holds one
// value per step, or one that holds at all steps.
type Node interface {
	// Shape describes the relation. Callers must not change it.
	Shape() *Shape
	// Children are the nodes that it reads, in the order of the query's text.
	Children() []Node
	// sql returns the body of the node's CTE.
	sql(b *builder) string
	// compute returns the same rows as the CTE, ascending by ordinal, each with a value at some
	// step. It calls the same C functions over the rows of the children. These have a value for
	// each step that the node reads; it changes none of them, but may return them.
	compute(children [][]vector.Row, t *Tools) ([]vector.Row, error)
	// String formats the operation in one line, without its children.
	String() string
}

// shaped is the part that all nodes have in common.
type shaped struct{ shape Shape }

// Shape implements Node.
func (n *shaped) Shape() *Shape { return &n.shape }

// titled is a node whose line is a text.
type titled struct{ text string }

// String implements Node.
func (n *titled) String() string { return n.text }

// unary is the part that nodes with one child have in common.
type unary struct {
	shaped
	in   Node
	room [1]Node // of Children, which plans ask often
}

// Children implements Node.
func (n *unary) Children() []Node {
	n.room[0] = n.in
	return n.room[:]
}

// binary is the part that nodes with two children have in common.
type binary struct {
	shaped
	l, r Node    // in the order of the query's text
	room [2]Node // as in unary
}

// Children implements Node.
func (n *binary) Children() []Node {
	n.room = [2]Node{n.l, n.r}
	return n.room[:]
}

// splitter is a Node each of whose outputs depends on known series of its input, so that a part of
// the output can be computed from a part of the input. feeds returns, for the child at an index,
// the output of each of the child's ordinals (vector.NoOrdinal: no output). nil means that every
// output needs all of the child, such as a scalar.
type splitter interface {
	feeds(child int) []uint32
}

// Shape describes the relation of a node.
type Shape struct {
	// Grid is the times of the values. A list of one element holds at all of them.
	Grid Grid
	// Scalar is a value without labels that exists at every step: one row, i = 0.
	Scalar bool
	// Labels are the label sets by ordinal. They are distinct and in upstream's order of the
	// series.
	Labels []labels.Labels
	// Drop marks, with delayed name removal, the ordinals whose metric name is dropped at the end
	// of the query; nil: none.
	Drop []bool
	// notes are the annotations that the values imply.
	notes []note
}

// drops reports whether the name of an ordinal is dropped at the end of the query.
func (s *Shape) drops(i int) bool { return s.Drop != nil && s.Drop[i] }

// building compiles the expressions of one query over the series of their selectors.
type building struct {
	options  Options
	resolved map[*parser.VectorSelector]*Resolution
	// done caches the results of compile. An expression occurs at one place only.
	done map[parser.Expr]compiled
	// leaves are the leaves that expressions may share, by their key, from the second one on.
	leaves map[string]*Leaf
	first  *Leaf
}

func newBuilding(o Options, resolved map[*parser.VectorSelector]*Resolution) *building {
	return &building{options: o, resolved: resolved, done: map[parser.Expr]compiled{}, leaves: map[string]*Leaf{}}
}

type compiled struct {
	node   Node
	reason string
}

// compile returns the node of expr, or a reason (not "") not to push it. Whatever the samples are,
// the node's values are those that upstream's evaluator computes for expr at the given place.
func (b *building) compile(expr parser.Expr, at place) (Node, string) {
	if c, ok := b.done[expr]; ok {
		return c.node, c.reason
	}
	if b.options.Ended != nil && b.options.Ended() {
		return nil, "the query has ended"
	}
	node, reason := b.compileNew(expr, at)
	if reason == "" && skips(node) {
		node, reason = nil, skippableQuantile
	}
	b.done[expr] = compiled{node, reason}
	return node, reason
}

func (b *building) compileNew(expr parser.Expr, at place) (Node, string) {
	if v, ok := Constant(expr); ok {
		return newConst(v, at.grid()), ""
	}
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return b.compile(e.Expr, at)
	case *parser.StepInvariantExpr:
		return b.compile(e.Expr, at.once())
	case *parser.VectorSelector:
		// The value of a series at a step is its latest sample within the lookback.
		leaf, reason := b.leaf(e, at, "prom_instant", b.options.Lookback)
		if reason != "" {
			return nil, reason
		}
		leaf.shape.Labels = labelsOf(leaf.Resolution)
		return b.shared(leaf), ""
	case *parser.UnaryExpr:
		in, reason := b.compile(e.Expr, at)
		if reason != "" || e.Op != parser.SUB {
			return in, reason
		}
		n := &mathNode{fn: "neg", in: in}
		return n.complete(b, at)
	case *parser.BinaryExpr:
		return compileBinary(b, e, at)
	case *parser.AggregateExpr:
		switch e.Op {
		case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
			return compileTopK(b, e, at)
		case parser.COUNT_VALUES:
			return nil, "count_values makes labels of values"
		}
		return compileGrouping(b, e, at)
	case *parser.Call:
		name := e.Func.Name
		switch name {
		case "absent", "absent_over_time":
			return compileAbsent(b, e, at)
		case "label_replace":
			return compileLabelReplace(b, e, at)
		case "label_join":
			return compileLabelJoin(b, e, at)
		case "histogram_quantile":
			return compileHistogramQuantile(b, e, at)
		case "sort", "sort_desc", "sort_by_label", "sort_by_label_desc":
			// In a range query it only adds a warning.
			if at.grid().N == 1 {
				return nil, "the engine sorts the results"
			}
			at.unordered = true
			in, reason := b.compile(e.Args[0], at)
			if reason != "" {
				return nil, reason
			}
			warning := note{err: annotations.NewSortInRangeQueryWarning(e.PositionRange()), always: true}
			n := &labelNode{unary: unary{shaped: shaped{*in.Shape()}, in: in}, titled: titled{e.Func.Name}}
			n.shape.Grid = at.grid()
			n.shape.notes = append(slices.Clip(n.shape.notes), warning)
			return n, ""
		case "scalar", "vector", "time", "max_of", "min_of":
			return compileScalarCall(b, e, at)
		case "timestamp":
			return compileTimestamp(b, e, at)
		}
		if _, ok := Maths[name]; ok {
			return compileMath(b, e, at)
		}
		if _, ok := Ranges[name]; ok {
			return compileRange(b, e, at)
		}
		return nil, name + "() is evaluated by the engine"
	}
	return nil, "a " + parser.DocumentedType(expr.Type()) + " is evaluated by the engine"
}

// nodesOf returns a node and those below it, each once and before its children, in the order of the
// query's text.
func nodesOf(root Node) []Node {
	all := make([]Node, 0, 8)
	seen := make(map[Node]bool, 8)
	var walk func(Node)
	walk = func(n Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		all = append(all, n)
		for _, c := range n.Children() {
			walk(c)
		}
	}
	walk(root)
	return all
}

// leavesAmong returns the leaves among nodes.
func leavesAmong(nodes []Node) (out []*Leaf) {
	for _, n := range nodes {
		if l, ok := n.(*Leaf); ok {
			out = append(out, l)
		}
	}
	return out
}
