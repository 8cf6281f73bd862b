package plan

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"
)

// direct is a Node whose values Go computes from those of its children, without a statement, with
// the same bits. All values have one element per step.
type direct interface {
	Node
	// computable reports whether it does, given that its children do.
	computable() bool
	// compute returns the rows of the node, ascending by ordinal, each with a value at some step. in
	// are the rows of its children. It changes none of them.
	compute(in [][]Row, room Room) ([]Row, error)
}

// Room returns memory of undefined content for n values.
type Room func(n int) []float64

// computable reports whether the values of a node are computed without a statement: those of a leaf
// are known. A node that is evaluated at all steps is not computed from one that is at the first.
func computable(n Node) bool {
	if _, leaf := n.(*Leaf); leaf {
		return true
	}
	d, ok := n.(direct)
	return ok && d.computable() && !slices.ContainsFunc(operands(n), func(c Node) bool {
		return c.Shape().Grid != n.Shape().Grid || !computable(c)
	})
}

// operands are the children of a node that are no numbers.
func operands(n Node) []Node {
	return slices.DeleteFunc(n.Children(), func(c Node) bool { _, number := c.(*constNode); return number })
}

// Direct reports whether Compute evaluates the subtree: a statement evaluates others.
func (p *Pushed) Direct() bool { return p.direct }

// Compute evaluates the subtree over the rows of its leaves, which are parallel to Leaves and
// ascending by ordinal: those of the groups of a fold. Where the buckets of a histogram are not monotonic, the error is
// ErrForcedMonotonicity. Rows may be those of a leaf.
func (p *Pushed) Compute(leaves [][]Row, room Room) ([]Row, error) {
	done := make(map[Node][]Row, len(leaves))
	for i, l := range p.Leaves {
		done[p.known(l)] = leaves[i]
	}
	return compute(p.Root, done, room)
}

func compute(n Node, done map[Node][]Row, room Room) ([]Row, error) {
	if rows, ok := done[n]; ok {
		return rows, nil
	}
	children := operands(n)
	in := make([][]Row, len(children))
	for i, c := range children {
		var err error
		if in[i], err = compute(c, done, room); err != nil {
			return nil, err
		}
	}
	rows, err := n.(direct).compute(in, room)
	done[n] = rows
	return rows, err
}

// absent is the value of a step without one.
var absent = math.Float64frombits(value.StaleNaN)

// blank returns n values that are absent.
func (room Room) blank(n int) []float64 {
	out := room(n)
	for i := range out {
		out[i] = absent
	}
	return out
}
