package plan

import (
	"maps"
	"slices"
)

// Fold is an aggregation whose input is a leaf with many values: they are added up series by
// series, as they are computed, so that they are never in memory at once.
type Fold struct {
	Op string   // sum, avg, min, max, count or group
	To []uint32 // the group of each ordinal of the leaf
	N  int      // groups
}

// Fold returns the aggregation that adds up the values of a leaf, nil if the values are held.
func (p *Pushed) Fold(l *Leaf) *Fold {
	g := p.folds[l]
	if g == nil {
		return nil
	}
	return &Fold{Op: g.op, To: g.to, N: len(g.shape.Labels)}
}

// Folds reports whether a node of the subtree is a fold.
func (p *Pushed) Folds(n Node) bool { return isFold(p.folds, n) }

func isFold(folds map[*Leaf]*groupNode, n Node) bool {
	for _, g := range folds {
		if Node(g) == n {
			return true
		}
	}
	return false
}

// known returns the node whose values are known once a leaf is evaluated: its fold, or the leaf.
func (p *Pushed) known(l *Leaf) Node {
	if g := p.folds[l]; g != nil {
		return g
	}
	return l
}

// Held is the largest number of values of a leaf that are held at once, with those of a fold.
func (p *Pushed) Held(l *Leaf) int64 {
	n := len(l.shape.Labels)
	if g := p.folds[l]; g != nil {
		n = len(g.shape.Labels) * foldedLists
	}
	return int64(n) * int64(l.Spec.Grid.N)
}

// foldedLists bounds the lists of values that a fold holds for each group: up to four, of each of
// sixteen threads. More threads are left to the budget of the query, which counts all lists.
const foldedLists = 64

// foldsOf returns the aggregations among all nodes of a subtree that are folds, by the leaf that
// they alone read. An aggregation of fewer values keeps them, to add them in upstream's order, and
// one with few series in each group would save nothing.
func foldsOf(nodes []Node, o *Options) map[*Leaf]*groupNode {
	large := func(n Node) bool { return len(n.Shape().Labels)*n.Shape().Grid.N > maxDirect }
	if o.MinRows == 0 || !o.Kernels || !slices.ContainsFunc(nodes, large) {
		return nil
	}
	folds, readers := map[*Leaf]*groupNode{}, map[*Leaf]int{}
	for _, n := range nodes {
		for _, c := range n.Children() {
			if l, ok := c.(*Leaf); ok {
				readers[l]++
			}
		}
		g, ok := n.(*groupNode)
		if !ok {
			continue
		}
		l, ok := g.in.(*Leaf)
		if ok && mergeable(g.op) && l.shape.Grid == g.shape.Grid && len(g.to)*l.Spec.Grid.N > maxDirect &&
			len(g.shape.Labels)*foldedLists <= len(g.to) {
			folds[l] = g
		}
	}
	maps.DeleteFunc(folds, func(l *Leaf, _ *groupNode) bool { return readers[l] > 1 })
	return folds
}
