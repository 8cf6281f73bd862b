package plan

import (
	"maps"
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
	if !mayIdle(n) {
		return n
	}
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
	if !slices.ContainsFunc(slices.Collect(maps.Values(leaves)), func(need []bool) bool { return slices.Contains(need, false) }) {
		return n
	}
	own := &building{options: b.options, resolved: map[*parser.VectorSelector]*Resolution{}}
	for l, need := range leaves {
		to := none(len(need))
		for i, is := range need {
			if is {
				to[i] = 0
			}
		}
		r := restrict(l.Resolution, to, span{0, 1})
		for _, e := range l.exprs {
			own.resolved[e] = r
		}
	}
	resolveIdle(expr, own.resolved)
	pruned, reason := own.compile(expr, at)
	if reason != "" || !slices.EqualFunc(pruned.Shape().Labels, n.Shape().Labels, labels.Equal) {
		return n
	}
	return pruned
}

// resolveIdle resolves to nothing the selectors of an expression that no leaf reads.
func resolveIdle(expr parser.Expr, resolved map[*parser.VectorSelector]*Resolution) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && resolved[v] == nil {
			resolved[v] = &Resolution{}
		}
		return nil
	})
}

// mayIdle reports whether there may be series of leaves on which no result depends. Most nodes need
// all series of their children.
func mayIdle(n Node) bool {
	switch n := n.(type) {
	case *Leaf, *constNode:
		return false
	case *groupNode:
		return mayIdle(n.in)
	case *scaleNode:
		return mayIdle(n.in) || mayIdle(n.scalar)
	case *mathNode:
		return mayIdle(n.in) || slices.ContainsFunc(n.params, mayIdle)
	case *joinNode:
		partial := func(to []uint32) bool { return slices.Contains(to, vector.NoOrdinal) }
		return n.pairs != nil || partial(n.to) || partial(n.lk) || partial(n.rk) || mayIdle(n.l) || mayIdle(n.r)
	}
	return true
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

func every(n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = true
	}
	return out
}

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
	if n.pairs != nil {
		out := make([]bool, len(n.Children()[child].Shape().Labels))
		for p, o := range n.pairs {
			i := p >> 32
			if child == 1 {
				i = p & 0xFFFFFFFF
			}
			out[i] = out[i] || need[o]
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

func (n *orNode) needs(child int, need []bool) []bool {
	right := goesInto(n.to, need)
	if child == 1 {
		return right
	}
	out := ofKeys(n.lk, n.rk, right)
	for i := range out {
		out[i] = out[i] || need[i]
	}
	return out
}

func (n *topNode) needs(_ int, need []bool) []bool { return ofKeys(n.to, n.to, need) }
