package plan

import (
	"github.com/prometheus/prometheus/model/labels"
)

// unite drops the names of a node's series, and merges those that then have the same labels. It
// returns false unless these are of the same class: at most one of them has a value at a step, so
// that every aggregate that keeps it returns the same.
func unite(in Node) (Node, bool) {
	of := classes(in)
	if of == nil {
		return nil, false
	}
	n := &groupNode{unary: unary{shaped: shaped{Shape{Grid: in.Shape().Grid}}, in: in}, titled: titled{"unite"}, op: "max", to: make([]uint32, len(of))}
	first := map[uint64]int{}
	for i, l := range stripNames(in.Shape().Labels) {
		j, again := first[l.Hash()]
		switch {
		case !again:
			first[l.Hash()] = i
			n.to[i] = uint32(len(n.shape.Labels))
			n.shape.Labels = append(n.shape.Labels, l)
		case of[i] != of[j]:
			return nil, false
		default:
			n.to[i] = n.to[j]
		}
	}
	var reason string
	n.shape.notes, reason = in.Shape().grouped(n.to, len(n.shape.Labels))
	return n, reason == ""
}

// nameless returns a node without metric names, merged by unite if necessary, or a reason not to
// push. With delayed names the node is unchanged: the names are dropped at the end of the query.
func (b *building) nameless(in Node) (node Node, ls []labels.Labels, drop []bool, reason string) {
	ls, drop, reason = b.withoutNames(in.Shape())
	if reason != duplicates {
		return in, ls, drop, reason
	}
	if n, ok := unite(in); ok {
		return n, n.Shape().Labels, nil, ""
	}
	return nil, nil, nil, duplicates
}

// counted returns a call of a C aggregate that counts its memory against the budget of the
// execution.
func (b *builder) counted(fn, args string) string {
	if b.budget == "" {
		return fn + "(" + args + ")"
	}
	return fn + "(" + args + ", " + b.budgetSpec() + ")"
}

// budgetSpec returns the parameter, which holds only the budget, of a C function without other
// parameters.
func (b *builder) budgetSpec() string {
	if b.budget == "" {
		return "''"
	}
	return "'budget=" + b.budget + "'"
}
