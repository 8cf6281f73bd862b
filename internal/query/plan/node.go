package plan

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Node is an operation of a pushed subtree: a relation (i UINTEGER, v DOUBLE[]) of one row per
// series that has a value at some step, where i is the ordinal of the row's labels in the shape and
// v has a value per step, or a single one that holds at all steps.
type Node interface {
	// Shape says what the relation holds. Callers do not change it.
	Shape() *Shape
	// Children are the nodes that it reads, in the order of the text.
	Children() []Node
	// sql returns the body of the node's CTE.
	sql(b *builder) string
	// String returns the operation in one line, without its children.
	String() string
}

// splitter is a Node of whose output each series depends on known series of the input, so that a
// part of its output can be had from a part of its input. feeds returns, for the child at an index,
// the ordinal of the output that each of the child's ordinals goes into (ordinals.None: it goes
// nowhere), or nil if all of the child is needed for any output, as with a scalar.
type splitter interface {
	feeds(child int) []uint32
}

// Shape describes a node's relation.
type Shape struct {
	// Grid are the times of the values. A list of one element holds at all of them.
	Grid Grid
	// Scalar is a value without labels that exists at every step: one row, i = 0.
	Scalar bool
	// Labels are those of each ordinal, distinct, in the order in which upstream would have the
	// series.
	Labels []labels.Labels
	// Drop says, with delayed name removal, whose metric name is to be dropped at the end of the
	// query; nil: nobody's.
	Drop []bool
	// notes are the annotations that come with the values.
	notes []note
}

// drops tells whether the name of an ordinal is to be dropped at the end of the query.
func (s *Shape) drops(i int) bool { return s.Drop != nil && s.Drop[i] }

// building compiles the expressions of one query. It knows the series of their selectors.
type building struct {
	options  Options
	resolved map[*parser.VectorSelector]*Resolution
	// done has what compile returned: an expression stands at one place only.
	done map[parser.Expr]compiled
	// leaves are those that expressions may share, by what they compute.
	leaves map[string]*Leaf
}

type compiled struct {
	node   Node
	reason string
}

// compile returns the node of expr, or a reason (not "") for having none. The node is upstream's
// value of expr under an evaluator that stands at the given place, whatever the samples are.
func (b *building) compile(expr parser.Expr, at place) (Node, string) {
	if c, ok := b.done[expr]; ok {
		return c.node, c.reason
	}
	if b.options.Ended != nil && b.options.Ended() {
		return nil, "the query has ended"
	}
	node, reason := b.compileNew(expr, at)
	if reason == "" && skips(node) {
		node, reason = nil, leftOut
	}
	b.done[expr] = compiled{node, reason}
	return node, reason
}

func (b *building) compileNew(expr parser.Expr, at place) (Node, string) {
	if v, ok := constant(expr); ok {
		return newConst(v, at.grid()), ""
	}
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return b.compile(e.Expr, at)
	case *parser.StepInvariantExpr:
		return b.compile(e.Expr, at.once())
	case *parser.VectorSelector:
		return compileSelector(b, e, at)
	case *parser.UnaryExpr:
		return compileUnary(b, e, at)
	case *parser.BinaryExpr:
		return compileBinary(b, e, at)
	case *parser.AggregateExpr:
		return compileAggregate(b, e, at)
	case *parser.Call:
		return compileCall(b, e, at)
	}
	return nil, "a " + parser.DocumentedType(expr.Type()) + " is evaluated by the engine"
}

func compileAggregate(b *building, e *parser.AggregateExpr, at place) (Node, string) {
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return compileTopK(b, e, at)
	case parser.COUNT_VALUES:
		return nil, "count_values makes labels of values"
	}
	return compileGrouping(b, e, at)
}

func compileCall(b *building, e *parser.Call, at place) (Node, string) {
	name := e.Func.Name
	switch name {
	case "absent":
		return compileAbsent(b, e, at)
	case "absent_over_time":
		return compileAbsentOverTime(b, e, at)
	case "label_replace":
		return compileLabelReplace(b, e, at)
	case "label_join":
		return compileLabelJoin(b, e, at)
	case "histogram_quantile":
		return compileHistogramQuantile(b, e, at)
	case "sort", "sort_desc", "sort_by_label", "sort_by_label_desc":
		return compileSort(b, e, at)
	case "scalar", "vector", "time", "max_of", "min_of":
		return compileScalarCall(b, e, at)
	case "timestamp":
		return compileTimestamp(b, e, at)
	}
	if _, ok := mathFuncs[name]; ok {
		return compileMath(b, e, at)
	}
	if _, ok := rangeFuncs[name]; ok {
		return compileRange(b, e, at)
	}
	return nil, name + "() is evaluated by the engine"
}
