package plan

import (
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/query/duck/promsql"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// maskNode keeps the values of l at the steps at which some matching series of r has a value (and),
// or none has (unless).
type maskNode struct {
	shaped
	titled
	op string
	l  Node
	r  presence
	lk []uint32 // the keys of the left series
	to []uint32 // the output of each left series
}

// keep sets the outputs: the left series that may have values in the result.
func (n *maskNode) keep(unmatched bool) {
	in := n.l.Shape()
	n.to = make([]uint32, len(in.Labels))
	for i, k := range n.lk {
		if n.to[i] = vector.NoOrdinal; k == vector.NoOrdinal && !unmatched {
			continue
		}
		n.to[i] = uint32(len(n.shape.Labels))
		n.shape.Labels = append(n.shape.Labels, in.Labels[i])
		if in.Drop != nil {
			n.shape.Drop = append(n.shape.Drop, in.Drop[i])
		}
	}
}

// Children implements Node.
func (n *maskNode) Children() []Node { return []Node{n.l, n.r.of} }

func (n *maskNode) feeds(child int) []uint32 {
	if child == 0 {
		return n.to
	}
	return nil
}

func (n *maskNode) sql(b *builder) string {
	l, join := b.rel(n.l), "JOIN"
	if n.op == "unless" {
		join = "LEFT JOIN"
	}
	return fmt.Sprintf("SELECT prom_at(l.i, %s) AS i, prom_binary('%s', l.v, r.v) AS v FROM %s AS l %s (%s) AS r ON r.k = prom_at(l.i, %s)",
		b.blob(vector.OrdinalArray(n.to)), n.op, l, join, n.r.sql(b), b.blob(vector.OrdinalArray(n.lk)))
}

func (n *maskNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	f := promsql.OperatorOf(n.op)
	masks := vector.Masks(in[1], n.r.keys, t.Room)
	out := make([]vector.Row, 0, len(in[0]))
	for _, r := range in[0] {
		to := n.to[r.I]
		switch mask := masks[n.lk[r.I]]; {
		case to == vector.NoOrdinal:
		case mask != nil:
			out = vector.Join(out, to, f, r.V, mask, t.Room)
		case n.op == "unless":
			out = append(out, vector.Row{I: to, V: r.V})
		}
	}
	return out, nil
}

// presence is a relation of keys: at which steps any series of a key has a value.
type presence struct {
	of     Node
	keys   []uint32 // no two series have the same key
	single bool     // no key has two series
}

// present returns the presence of a node's series by their keys. It skips operations that do not
// change presence.
func present(n Node, keys []uint32) presence {
	for {
		in, to, ok := presentWith(n)
		if !ok {
			return presence{of: n, keys: keys, single: single(keys)}
		}
		below := make([]uint32, len(to))
		for i, o := range to {
			if below[i] = vector.NoOrdinal; o != vector.NoOrdinal {
				below[i] = keys[o]
			}
		}
		n, keys = in, below
	}
}

// single reports whether no two series have the same key.
func single(keys []uint32) bool {
	seen := make(map[uint32]bool, len(keys))
	for _, k := range keys {
		if k != vector.NoOrdinal && seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

// presentWith returns the node below n that decides at which steps n has values: series to[i] of n
// has a value where some series i of in with that output has one.
func presentWith(n Node) (in Node, to []uint32, ok bool) {
	switch n := n.(type) {
	case *mathNode:
		if n.fn != "clamp" && !n.shape.Scalar {
			return n.in, all(len(n.shape.Labels)), true
		}
	case *scaleNode:
		// Operators but comparisons have a value wherever both sides have one.
		if !strings.ContainsAny(n.op, "=<>") {
			in, _ := n.operands()
			return in, all(len(n.shape.Labels)), true
		}
	case *labelNode:
		return n.in, all(len(n.shape.Labels)), true
	case *groupNode:
		return n.in, n.to, true
	}
	return nil, nil, false
}

// sql returns a SELECT with the columns k UINTEGER and v DOUBLE[]: a row per key that has a value
// at some step.
func (p presence) sql(b *builder) string {
	of := b.rel(p.of)
	sql := fmt.Sprintf("SELECT prom_at(i, %s) AS k, v FROM %s", b.blob(vector.OrdinalArray(p.keys)), of)
	if p.single {
		return sql
	}
	return "SELECT k, " + b.counted("prom_group", "v") + " AS v FROM (" + sql + ") WHERE k IS NOT NULL GROUP BY k"
}
