package plan

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// needer is a Node that knows which series of a child its needed outputs depend on, although feeds
// of splitter cannot express it. need is by output.
type needer interface {
	needs(child int, need []bool) []bool
}

// prune compiles an expression without the series of leaves on which no result depends because they
// match nothing. It returns n if there are none.
func (b *building) prune(expr parser.Expr, at place, n Node) Node {
	leaves := map[*Leaf][]bool{}
	var walk func(Node, []bool)
	walk = func(n Node, need []bool) {
		if l, ok := n.(*Leaf); ok {
			if leaves[l] == nil {
				leaves[l] = make([]bool, len(need))
			}
			if len(l.shape.notes) > 0 {
				// Upstream adds annotations for series that match nothing, too.
				need = every(len(need))
			}
			for i, is := range need {
				leaves[l][i] = leaves[l][i] || is
			}
			return
		}
		for k, c := range n.Children() {
			walk(c, needsOf(n, k, c, need))
		}
	}
	walk(n, every(len(n.Shape().Labels)))
	idle, all := false, make([]*Leaf, 0, len(leaves))
	for l, need := range leaves {
		idle, all = idle || slices.Contains(need, false), append(all, l)
	}
	if !idle {
		return n
	}
	pruned, reason := compileSome(b.options, expr, at, all, func(l *Leaf, i int) bool { return leaves[l][i] })
	if reason != "" || !slices.EqualFunc(pruned.Shape().Labels, n.Shape().Labels, labels.Equal) {
		return n
	}
	return pruned
}

// compileSome compiles an expression that reads leaves over those of their series that keep
// chooses.
func compileSome(o Options, expr parser.Expr, at place, leaves []*Leaf, keep func(l *Leaf, series int) bool) (Node, string) {
	b := newBuilding(o, map[*parser.VectorSelector]*Resolution{})
	for _, l := range leaves {
		some, all := &Resolution{}, l.Resolution
		for i, s := range all.Series {
			if keep(l, i) {
				some.Series = append(some.Series, s)
			}
		}
		if len(all.Series) > 0 {
			some.Rows = all.Rows * int64(len(some.Series)) / int64(len(all.Series))
		}
		for _, e := range l.exprs {
			b.resolved[e] = some
		}
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && b.resolved[v] == nil {
			b.resolved[v] = &Resolution{} // no leaf reads it
		}
		return nil
	})
	return b.compile(expr, at)
}

// needsOf returns which series of a child the needed outputs of n depend on.
func needsOf(n Node, k int, child Node, need []bool) []bool {
	if x, ok := n.(needer); ok {
		return x.needs(k, need)
	}
	if s, ok := n.(splitter); ok {
		if feeds := s.feeds(k); feeds != nil {
			return goesInto(feeds, need)
		}
	}
	return every(len(child.Shape().Labels))
}

func every(n int) []bool { return slices.Repeat([]bool{true}, n) }

// goesInto reports, for each series, whether it goes into a needed output.
func goesInto(to []uint32, need []bool) []bool {
	out := make([]bool, len(to))
	for i, o := range to {
		out[i] = o != vector.NoOrdinal && need[o]
	}
	return out
}

// ofKeys reports, for each series, whether its key is that of a needed series of the other side.
func ofKeys(keys, others []uint32, need []bool) []bool {
	wanted := map[uint32]bool{}
	for j, k := range others {
		if need[j] {
			wanted[k] = true
		}
	}
	out := make([]bool, len(keys))
	for i, k := range keys {
		out[i] = k != vector.NoOrdinal && wanted[k]
	}
	return out
}

func (n *joinNode) needs(child int, need []bool) []bool {
	if n.place != nil {
		out, right := make([]bool, len(n.Children()[child].Shape().Labels)), byKey(n.rk)
		for l, k := range n.lk {
			for _, r := range right[k] {
				i := uint32(l)
				if child == 1 {
					i = r
				}
				out[i] = out[i] || need[n.outputOf(uint32(l), r)]
			}
		}
		return out
	}
	many := goesInto(n.to, need)
	switch {
	case (child == 0) == n.manyLeft:
		return many
	case child == 0:
		return ofKeys(n.lk, n.rk, many)
	}
	return ofKeys(n.rk, n.lk, many)
}

func (n *maskNode) needs(child int, need []bool) []bool {
	left := goesInto(n.to, need)
	if child == 0 {
		return left
	}
	return ofKeys(n.r.keys, n.lk, left)
}

func (n *topNode) needs(_ int, need []bool) []bool { return ofKeys(n.to, n.to, need) }
