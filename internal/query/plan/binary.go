package plan

import (
	"fmt"
	"slices"

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
		n := &scaleNode{binary: binary{shaped: shaped{scalarShape(at.grid())}, l: l, r: r}, op: Operator(e, false)}
		n.shape.notes, reason = independentNotesOf(l, r)
		return n, reason
	case rs:
		return withScalar(b, e, l, r, false, at)
	case ls:
		return withScalar(b, e, l, r, true, at)
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

// operandOf formats an operand: a number, or "scalar" or "vector" for a node that has its own line.
func operandOf(n Node) string {
	switch c, ok := n.(*constNode); {
	case ok:
		return c.String()
	case n.Shape().Scalar:
		return "scalar"
	}
	return "vector"
}

// scaleNode applies an operator to every value of a node and a scalar. If both are scalars, so is
// the result.
type scaleNode struct {
	binary
	op   string // of prom_binary
	swap bool   // the scalar is the left operand
}

// operands returns the node whose values are changed, and the scalar.
func (n *scaleNode) operands() (in, scalar Node) {
	if n.swap {
		return n.r, n.l
	}
	return n.l, n.r
}

// withScalar compiles an operator between a vector and a scalar. swap: the scalar is the left
// operand.
// Source: VectorscalarBinop in upstream's promql/engine.go.
func withScalar(b *building, e *parser.BinaryExpr, l, r Node, swap bool, at place) (Node, string) {
	n := &scaleNode{binary: binary{l: l, r: r}, op: Operator(e, swap), swap: swap}
	in, scalar := n.operands()
	n.shape = Shape{Grid: at.grid(), Labels: in.Shape().Labels, Drop: in.Shape().Drop}
	var reason string
	if e.Op.IsComparisonOperator() && !e.ReturnBool { // it omits values
		n.shape.notes, reason = in.Shape().independentNotes()
	} else {
		in, n.shape.Labels, n.shape.Drop, reason = b.nameless(in)
		if reason == "" {
			n.shape.notes = in.Shape().notes
		}
		if n.swap {
			n.r = in
		} else {
			n.l = in
		}
	}
	if reason != "" {
		return nil, reason
	}
	more, reason := scalar.Shape().independentNotes()
	n.shape.notes = slices.Concat(n.shape.notes, more)
	return n, reason
}

// String implements Node.
func (n *scaleNode) String() string { return operandOf(n.l) + " " + n.op + " " + operandOf(n.r) }

func (n *scaleNode) feeds(child int) []uint32 {
	if (child == 0) == n.swap {
		return nil
	}
	return all(len(n.shape.Labels))
}

func (n *scaleNode) sql(b *builder) string {
	in, scalar := n.operands()
	rel := b.rel(in)
	l, r := "v", b.list(scalar)
	if n.swap {
		l, r = r, l
	}
	return fmt.Sprintf("SELECT i, prom_binary('%s', %s, %s) AS v FROM %s", n.op, l, r, rel)
}

func (n *scaleNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	f := promsql.OperatorOf(n.op)
	out := make([]vector.Row, 0, max(len(in[0]), len(in[1])))
	if n.swap {
		for _, r := range in[1] {
			out = vector.Join(out, r.I, f, in[0][0].V, r.V, t.Room)
		}
		return out, nil
	}
	for _, r := range in[0] {
		out = vector.Join(out, r.I, f, r.V, in[1][0].V, t.Room)
	}
	return out, nil
}
