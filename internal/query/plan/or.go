package plan

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck/promsql"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// orNode has the values of l, and those of r at the steps at which no matching series of l has a
// value.
type orNode struct {
	binary
	titled
	lk, rk []uint32 // the keys to match on
	// to is the output of each right series. The outputs of the left series come first, in their
	// order.
	to     []uint32
	merged bool // a right series has the labels of a left one
	masked bool // a left series with other labels hides values of a right series
}

func compileOr(e *parser.BinaryExpr, l, r Node, match matched, at place) (Node, string) {
	switch {
	case len(r.Shape().Labels) == 0 && len(r.Shape().notes) == 0:
		return l, ""
	case len(l.Shape().Labels) == 0 && len(l.Shape().notes) == 0:
		return r, ""
	}
	n := &orNode{titled: titled{joinText(e)}, binary: binary{l: l, r: r}}
	n.lk, n.rk = match.left.shared(match.right), match.right.shared(match.left)
	ls, rs := l.Shape(), r.Shape()
	n.shape = Shape{Grid: at.grid(), Labels: slices.Clip(ls.Labels)}
	byLabels := make(map[uint64]uint32, len(ls.Labels)) // ordinals by hash
	for i, l := range ls.Labels {
		byLabels[l.Hash()] = uint32(i)
	}
	drop := make([]bool, len(ls.Labels), len(ls.Labels)+len(rs.Labels))
	copy(drop, ls.Drop)
	n.to = make([]uint32, len(rs.Labels))
	for j, l := range rs.Labels {
		i, same := byLabels[l.Hash()]
		if !same {
			i = uint32(len(n.shape.Labels))
			n.shape.Labels = append(n.shape.Labels, l)
			drop = append(drop, rs.drops(j))
		} else if drop[i] != rs.drops(j) {
			return nil, "whether a series has a metric name depends on its samples"
		}
		n.to[j] = i
		n.merged = n.merged || same
		n.masked = n.masked || n.hides(j, match.left)
	}
	if ls.Drop != nil || rs.Drop != nil {
		n.shape.Drop = drop
	}
	var reason string
	n.shape.notes, reason = n.notes()
	return n, reason
}

// byKey returns the series of each key, ascending.
func byKey(keys []uint32) map[uint32][]uint32 {
	out := make(map[uint32][]uint32)
	for i, k := range keys {
		if k != vector.NoOrdinal {
			out[k] = append(out[k], uint32(i))
		}
	}
	return out
}

// hides reports whether a left series with other labels than right series j hides values of it.
func (n *orNode) hides(j int, left side) bool {
	if n.rk[j] == vector.NoOrdinal {
		return false
	}
	m := left.members[n.rk[j]]
	return len(m) > 1 || m[0] != n.to[j]
}

// notes returns the notes of both sides. If the left side may hide a series of the right side, the
// result does not show whether that series has a value.
func (n *orNode) notes() ([]note, string) {
	ls, rs := n.l.Shape(), n.r.Shape()
	feeds := append(all(len(ls.Labels)), n.to...)
	out, reason := ls.grouped(feeds, len(n.shape.Labels))
	if reason != "" {
		return nil, reason
	}
	moved := Shape{}
	for _, r := range rs.notes {
		if r.independent() {
			moved.notes = append(moved.notes, r)
			continue
		}
		on := make([]uint32, len(r.on))
		for i, j := range r.on {
			if n.rk[j] != vector.NoOrdinal {
				return nil, hiddenAnnotations
			}
			on[i] = j + uint32(len(ls.Labels))
		}
		moved.notes = append(moved.notes, note{err: r.err, on: on})
	}
	more, reason := moved.grouped(feeds, len(n.shape.Labels))
	return append(out, more...), reason
}

func (n *orNode) feeds(child int) []uint32 {
	switch {
	case n.masked:
		return nil // whether a right series has a value depends on all left series of its key
	case child == 0:
		return all(len(n.l.Shape().Labels))
	}
	return n.to
}

func (n *orNode) sql(b *builder) string {
	l, right := b.rel(n.l), n.rightSQL(b)
	if n.merged {
		return fmt.Sprintf("SELECT coalesce(l.i, r.i) AS i, prom_binary('or', l.v, r.v) AS v FROM %s AS l FULL JOIN (%s) AS r ON l.i = r.i", l, right)
	}
	return fmt.Sprintf("SELECT i, v FROM %s UNION ALL %s", l, right)
}

// rightSQL returns a SELECT of the right series by output, without the values that left series with
// other labels hide.
func (n *orNode) rightSQL(b *builder) string {
	r, to := b.rel(n.r), b.blob(vector.OrdinalArray(n.to))
	if !n.masked {
		return fmt.Sprintf("SELECT prom_at(i, %s) AS i, v FROM %s", to, r)
	}
	p := presence{of: n.l, keys: n.lk, single: single(n.lk)}
	return fmt.Sprintf("SELECT prom_at(r.i, %s) AS i, prom_binary('unless', r.v, p.v) AS v FROM %s AS r LEFT JOIN (%s) AS p ON p.k = prom_at(r.i, %s)",
		to, r, p.sql(b), b.blob(vector.OrdinalArray(n.rk)))
}

func (n *orNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	unless := promsql.OperatorOf("unless")
	masks := map[uint32][]float64{}
	if n.masked {
		masks = vector.Masks(in[0], n.lk, t.Room)
	}
	out := append(make([]vector.Row, 0, len(in[0])+len(in[1])), in[0]...)
	for _, r := range in[1] {
		if mask := masks[n.rk[r.I]]; mask != nil {
			out = vector.Join(out, n.to[r.I], unless, r.V, mask, t.Room)
		} else {
			out = append(out, vector.Row{I: n.to[r.I], V: r.V})
		}
	}
	return vector.Union(out, t.Room), nil
}
