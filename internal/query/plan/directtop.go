package plan

import (
	"math"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

func (n *topNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	groups := 0
	for _, g := range n.to {
		groups = max(groups, int(g)+1)
	}
	chosen := make([][]float64, len(n.to))
	for _, members := range byGroup(in[0], n.to, groups) {
		if int64(len(members)) <= n.k {
			for _, r := range members {
				chosen[r.I] = r.V
			}
			continue
		}
		n.choose(members, chosen, t.Room)
	}
	out := make([]Row, 0, len(in[0]))
	for i, v := range chosen {
		if v != nil {
			out = append(out, Row{uint32(i), v})
		}
	}
	return out, nil
}

// choose writes the chosen values of a group, by ordinal.
func (n *topNode) choose(members []Row, chosen [][]float64, room Room) {
	h := ranking{bottom: n.op == "bottomk", all: make([]candidate, 0, n.k)}
	for k := range n.shape.Grid.N {
		h.all = h.all[:0]
		for _, r := range members {
			f := r.V[k]
			switch {
			case value.IsStaleNaN(f):
			case int64(len(h.all)) < n.k:
				h.push(candidate{f, r.I})
			case n.op != "limitk":
				h.offer(candidate{f, r.I})
			}
		}
		for _, c := range h.all {
			if chosen[c.i] == nil {
				chosen[c.i] = room.blank(n.shape.Grid.N)
			}
			chosen[c.i][k] = c.v
		}
	}
}

type candidate struct {
	v float64
	i uint32 // its ordinal
}

// ranking is a heap of the values that are chosen so far, the next one to be replaced first. Which
// of equal values is chosen depends on the steps of Go's container/heap, which it repeats.
// Source: evaluator.aggregationK in upstream's promql/engine.go.
type ranking struct {
	bottom bool
	all    []candidate
}

func (h *ranking) less(i, j int) bool {
	a, b := h.all[i].v, h.all[j].v
	return math.IsNaN(a) || h.below(a, b)
}

func (h *ranking) below(a, b float64) bool { return a < b && !h.bottom || a > b && h.bottom }

func (h *ranking) swap(i, j int) { h.all[i], h.all[j] = h.all[j], h.all[i] }

func (h *ranking) push(c candidate) {
	h.all = append(h.all, c)
	for at := len(h.all) - 1; at > 0; {
		up := (at - 1) / 2
		if !h.less(at, up) {
			return
		}
		h.swap(at, up)
		at = up
	}
}

// offer replaces the first value by a better one.
func (h *ranking) offer(c candidate) {
	if first := h.all[0].v; !h.below(first, c.v) && (!math.IsNaN(first) || math.IsNaN(c.v)) {
		return
	}
	h.all[0] = c
	for at := 0; ; {
		down := 2*at + 1
		if down >= len(h.all) {
			return
		}
		if down+1 < len(h.all) && h.less(down+1, down) {
			down++
		}
		if !h.less(down, at) {
			return
		}
		h.swap(at, down)
		at = down
	}
}

func (n *pickNode) compute(in [][]Row, _ *Tools) ([]Row, error) {
	out := make([]Row, 0, len(n.shape.Labels))
	for _, r := range in[0] {
		if to := n.to[r.I]; to != ordinals.None {
			out = append(out, Row{to, r.V})
		}
	}
	return out, nil
}
