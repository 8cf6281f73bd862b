package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Partition divides the subtree into parts whose leaves have about maxRows samples each, if they
// have more in total. Each part computes some of the series, or, if the groups of the aggregation
// at the root are larger than that, aggregates some of the input. It returns false if the subtree
// must run whole. A part has the name, grid and position of the whole, and labels of its own. The
// whole provides the annotations.
func (p *Pushed) Partition(maxRows int64) (parts []*Pushed, merge Merge, ok bool) {
	if maxRows <= 0 || rowsOf(p.Leaves) <= maxRows {
		return nil, nil, false
	}
	how, ok := p.cuts(maxRows)
	if !ok {
		return nil, nil, false
	}
	index := map[string]uint32{}
	for i, l := range p.Root.Shape().Labels {
		index[string(l.Bytes(nil))] = uint32(i)
	}
	m := &merger{cuts: how.spans, rank: how.rank}
	for _, c := range how.spans {
		part, ok := p.part(how.flow, c)
		if !ok {
			return nil, nil, false
		}
		ordinals := none(len(part.Labels))
		for i, l := range part.Labels {
			if o, ok := index[string(l.Bytes(nil))]; ok {
				ordinals[i] = o
			}
		}
		m.maps = append(m.maps, ordinals)
		if g, ok := part.Root.(*groupNode); ok && how.partial && g.op == "avg" {
			average := &averageNode{*g}
			average.text, average.shape = "sum and count of "+g.text, Shape{Grid: g.shape.Grid}
			for _, l := range g.shape.Labels {
				average.shape.Labels = append(average.shape.Labels, l, l)
			}
			part.Root = average
			part.Labels, part.folds = part.Root.Shape().Labels, nil // sums and counts are not folded
		}
		parts = append(parts, part)
	}
	if how.partial {
		return parts, m.aggregates(p.Root.(*groupNode).op), true
	}
	return parts, m.rows, true
}

// cutting is a division of a subtree into parts.
type cutting struct {
	flow    flow     // from the series of leaves to ranks
	rank    []uint32 // of each ordinal: the order in which the series that flow into it are stored
	spans   []span   // of ranks
	partial bool     // the spans divide the input of the aggregation at the root
	largest int64    // approximate number of samples of the largest part
}

// cuts divides the subtree into parts of at most maxRows samples, as far as it can. It returns
// false if there are not at least two parts.
func (p *Pushed) cuts(maxRows int64) (c cutting, ok bool) {
	n := len(p.Root.Shape().Labels)
	if c.flow, ok = flowOf(p.Root); !ok || p.Root.Shape().Scalar || c.flow.hides() {
		return c, false
	}
	weights := c.flow.weights(n)
	large := slices.Max(append(weights, 0)) > maxRows
	if group, is := p.Root.(*groupNode); is && mergeable(group.op) && (large || placed(p.Leaves)) {
		in := len(group.in.Shape().Labels)
		switch inner, ok := flowOf(group.in); {
		case ok && inner.covers(in):
			c.partial, c.flow, n = true, inner, in
		case large:
			return c, false
		}
	}
	first, order, rank := make([]int64, n), make([]uint32, n), make([]uint32, n)
	for o := range first {
		first[o], order[o] = math.MaxInt64, uint32(o)
	}
	for l, to := range c.flow {
		for i, o := range to {
			if o != vector.NoOrdinal {
				first[o] = min(first[o], l.Resolution.Series[i].Place)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(first[a], first[b]) })
	for r, o := range order {
		rank[o] = uint32(r)
	}
	c.rank = rank
	for l, to := range c.flow {
		c.flow[l] = through(to, c.rank)
	}
	weights = c.flow.weights(n)
	c.spans = cut(weights, maxRows)
	for _, s := range c.spans {
		var rows int64
		for _, w := range weights[s.from:s.to] {
			rows += w
		}
		c.largest = max(c.largest, rows)
	}
	return c, len(c.spans) > 1
}

// fits reports whether the subtree, or each of its parts, reads at most maxRows samples. A leaf
// alone can be divided as finely as needed.
func (p *Pushed) fits(maxRows int64) bool {
	if _, leaf := p.Root.(*Leaf); leaf || maxRows <= 0 || rowsOf(p.Leaves) <= maxRows {
		return true
	}
	how, ok := p.cuts(maxRows)
	return ok && how.largest <= maxRows
}

// span is a range of ordinals, the end exclusive.
type span struct{ from, to uint32 }

// placed reports whether the storage order of the leaves' series is known.
func placed(leaves []*Leaf) bool {
	for _, l := range leaves {
		for _, s := range l.Resolution.Series {
			if s.Place != 0 {
				return true
			}
		}
	}
	return false
}

// part compiles the subtree over only those series that flow into a span of ranks.
func (p *Pushed) part(f flow, s span) (*Pushed, bool) {
	root, reason := compileSome(*p.origin.options, p.origin.expr, p.origin.at, p.Leaves, func(l *Leaf, i int) bool {
		to := f[l]
		return to == nil || to[i] != vector.NoOrdinal && to[i] >= s.from && to[i] < s.to
	})
	if reason != "" {
		return nil, false
	}
	nodes := nodesOf(root)
	return &Pushed{
		Name: p.Name, Root: root, Leaves: leavesAmong(nodes), Grid: p.Grid, Labels: root.Shape().Labels, Pos: p.Pos, origin: p.origin,
		folds: foldsOf(nodes, p.origin.options),
	}, true
}

// flow maps each leaf to the ordinal of a node that each of the leaf's series flows into; nil if
// every ordinal needs all series of the leaf.
type flow map[*Leaf][]uint32

// flowOf traces the leaves of a node. It returns false if an output depends on unknown series.
func flowOf(n Node) (flow, bool) {
	if l, ok := n.(*Leaf); ok {
		return flow{l: all(len(l.shape.Labels))}, true
	}
	out := flow{}
	s, splits := n.(splitter)
	for k, c := range n.Children() {
		below := leavesAmong(nodesOf(c))
		switch {
		case len(below) == 0:
		case !splits:
			return nil, false
		default:
			if feeds := s.feeds(k); !out.add(c, below, feeds) {
				return nil, false
			}
		}
	}
	return out, true
}

// add adds the leaves below a child whose ordinals flow into feeds. It returns false if a leaf
// flows into the node by two different ways.
func (f flow) add(child Node, below []*Leaf, feeds []uint32) bool {
	in := flow{}
	if feeds == nil {
		for _, l := range below {
			in[l] = nil
		}
	} else {
		var ok bool
		if in, ok = flowOf(child); !ok {
			return false
		}
	}
	for l, to := range in {
		to = through(to, feeds)
		if other, twice := f[l]; twice && ((other == nil) != (to == nil) || !slices.Equal(other, to)) {
			return false
		}
		f[l] = to
	}
	return true
}

// through composes two mappings: from series to ordinals of a child, and from those to outputs.
func through(to, feeds []uint32) []uint32 {
	if to == nil || feeds == nil {
		return nil
	}
	out := make([]uint32, len(to))
	for i, o := range to {
		if out[i] = vector.NoOrdinal; o != vector.NoOrdinal {
			out[i] = feeds[o]
		}
	}
	return out
}

// hides reports whether a series with annotations flows nowhere, so that no part would read it.
func (f flow) hides() bool {
	for l, to := range f {
		if len(l.shape.notes) > 0 && slices.Contains(to, vector.NoOrdinal) {
			return true
		}
	}
	return false
}

// weights returns the approximate number of samples that flow into each of n ordinals.
func (f flow) weights(n int) []int64 {
	out := make([]int64, n)
	for l, to := range f {
		for _, o := range to {
			if o != vector.NoOrdinal {
				out[o] += l.Resolution.Rows/int64(len(to)) + 1
			}
		}
	}
	return out
}

// covers reports whether a series of some leaf flows into each of n ordinals.
func (f flow) covers(n int) bool {
	seen, count := make([]bool, n), 0
	for _, to := range f {
		for _, o := range to {
			if o != vector.NoOrdinal && !seen[o] {
				seen[o] = true
				count++
			}
		}
	}
	return count == n
}

// cut divides ordinals into spans whose weights sum to at most limit, or of one ordinal.
func cut(weights []int64, limit int64) []span {
	var out []span
	var from uint32
	var sum int64
	for i, w := range weights {
		if sum += w; sum > limit && uint32(i) > from {
			out = append(out, span{from, uint32(i)})
			from, sum = uint32(i), w
		}
	}
	return append(out, span{from, uint32(len(weights))})
}
