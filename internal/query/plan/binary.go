package plan

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan/vector"
)

// compileBinary compiles the operators between two expressions.
func compileBinary(b *building, e *parser.BinaryExpr, at place) (Node, string) {
	if e.Op == parser.TRIM_UPPER || e.Op == parser.TRIM_LOWER {
		return nil, e.Op.String() + " is of native histograms"
	}
	left, right := at, at
	// The result has the order of the left side, or of the "many" side; with or, that of both.
	switch m := e.VectorMatching; {
	case m != nil && m.Card == parser.CardOneToMany:
		left.unordered = true
	case m != nil && e.Op != parser.LOR:
		right.unordered = true
	}
	l, reason := b.compile(e.LHS, left)
	if reason != "" {
		return nil, reason
	}
	r, reason := b.compile(e.RHS, right)
	if reason != "" {
		return nil, reason
	}
	ls, rs := l.Shape().Scalar, r.Shape().Scalar
	// compileSet and compileJoin leave a side out of the plan if nothing matches it.
	if !ls && !rs && (repairs(l) || repairs(r)) {
		return nil, skippableQuantile
	}
	switch {
	case ls && rs:
		// A comparison between scalars always has the modifier bool.
		n := &pairNode{shaped: shaped{scalarShape(at.grid())}, op: Operator(e, false), l: l, r: r}
		n.shape.notes, reason = independentNotesOf(l, r)
		return n, reason
	case rs:
		return withScalar(b, e, l, r, false, at)
	case ls:
		return withScalar(b, e, r, l, true, at)
	case e.Op.IsSetOperator():
		match := matchSeries(e.VectorMatching, l.Shape().Labels, r.Shape().Labels)
		if e.Op == parser.LOR {
			return compileOr(e, l, r, match, at)
		}
		if e.Op == parser.LUNLESS && len(r.Shape().notes) == 0 && !match.meets() {
			return l, ""
		}
		notes, reason := independentNotesOf(l, r)
		if reason != "" {
			return nil, reason
		}
		n := &maskNode{op: e.Op.String(), titled: titled{joinText(e)}, l: l, r: present(r, match.right.shared(match.left))}
		n.lk = match.left.shared(match.right)
		n.shape = Shape{Grid: at.grid(), notes: notes}
		n.keep(e.Op == parser.LUNLESS)
		return n, ""
	}
	return compileJoin(b, e, l, r, at)
}

// Operator returns an operator's name for prom_binary. With keepRight, a comparison that filters
// returns the right value instead of the left.
func Operator(e *parser.BinaryExpr, keepRight bool) string {
	op := e.Op.String()
	switch {
	case e.ReturnBool:
		return "bool" + op
	case keepRight && e.Op.IsComparisonOperator():
		return "r" + op
	}
	return op
}

// pairNode is a scalar computed from two scalars.
type pairNode struct {
	shaped
	op   string // of prom_binary
	l, r Node
}

// independentNotesOf returns the notes of all nodes, or a reason not to push them.
func independentNotesOf(nodes ...Node) (all []note, reason string) {
	for _, n := range nodes {
		notes, reason := n.Shape().independentNotes()
		if reason != "" {
			return nil, reason
		}
		all = append(all, notes...)
	}
	return all, ""
}

// Children implements Node.
func (n *pairNode) Children() []Node { return []Node{n.l, n.r} }

// String implements Node.
func (n *pairNode) String() string { return operandOf(n.l) + " " + n.op + " " + operandOf(n.r) }

func (n *pairNode) sql(b *builder) string {
	l := b.list(n.l)
	return fmt.Sprintf("SELECT 0::UINTEGER AS i, prom_binary('%s', %s, %s) AS v", n.op, l, b.list(n.r))
}

func (n *pairNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	f := promsql.OperatorOf(n.op)
	v := t.Room(n.shape.Grid.N)
	f.Apply(v, in[0][0].V, in[1][0].V)
	return []vector.Row{{V: v}}, nil
}

// operandOf formats a scalar operand: a number, or "scalar" for a node that has its own line.
func operandOf(n Node) string {
	if c, ok := n.(*constNode); ok {
		return c.String()
	}
	return "scalar"
}

// scaleNode applies an operator to every value of in and a scalar.
type scaleNode struct {
	shaped
	op     string // of prom_binary
	in     Node
	scalar Node
	swap   bool    // the scalar is the left operand
	room   [2]Node // of Children
}

// withScalar compiles an operator between a vector and a scalar. swap: the scalar is the left
// operand.
// Source: VectorscalarBinop in upstream's promql/engine.go.
func withScalar(b *building, e *parser.BinaryExpr, in, scalar Node, swap bool, at place) (Node, string) {
	n := &scaleNode{op: Operator(e, swap), in: in, scalar: scalar, swap: swap}
	n.shape = Shape{Grid: at.grid(), Labels: in.Shape().Labels, Drop: in.Shape().Drop}
	var reason string
	if e.Op.IsComparisonOperator() && !e.ReturnBool { // it omits values
		n.shape.notes, reason = in.Shape().independentNotes()
	} else if n.in, n.shape.Labels, n.shape.Drop, reason = b.nameless(in); reason == "" {
		n.shape.notes = n.in.Shape().notes
	}
	if reason != "" {
		return nil, reason
	}
	more, reason := scalar.Shape().independentNotes()
	if reason != "" {
		return nil, reason
	}
	n.shape.notes = append(n.shape.notes[:len(n.shape.notes):len(n.shape.notes)], more...)
	return n, ""
}

// Children implements Node.
func (n *scaleNode) Children() []Node {
	n.room = [2]Node{n.in, n.scalar}
	if n.swap {
		n.room = [2]Node{n.scalar, n.in}
	}
	return n.room[:]
}

// String implements Node.
func (n *scaleNode) String() string {
	if n.swap {
		return operandOf(n.scalar) + " " + n.op + " vector"
	}
	return "vector " + n.op + " " + operandOf(n.scalar)
}

func (n *scaleNode) feeds(child int) []uint32 {
	if (child == 0) == n.swap {
		return nil
	}
	return all(len(n.shape.Labels))
}

func (n *scaleNode) sql(b *builder) string {
	in := b.rel(n.in)
	l, r := "v", b.list(n.scalar)
	if n.swap {
		l, r = r, l
	}
	return fmt.Sprintf("SELECT i, prom_binary('%s', %s, %s) AS v FROM %s", n.op, l, r, in)
}

func (n *scaleNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	series, number := in[0], in[1]
	if n.swap {
		series, number = number, series
	}
	f := promsql.OperatorOf(n.op)
	out := make([]vector.Row, 0, len(series))
	for _, r := range series {
		left, right := r.V, number[0].V
		if n.swap {
			left, right = right, left
		}
		out = vector.Join(out, r.I, f, left, right, t.Room)
	}
	return out, nil
}
