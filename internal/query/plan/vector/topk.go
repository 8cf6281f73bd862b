package vector

import (
	"math"

	"github.com/prometheus/prometheus/model/value"
)

// Top returns the values that topk, bottomk or limitk chooses: k of each group at each step. to has
// the group of each ordinal.
func Top(op string, k int64, rows []Row, to []uint32, room Room) []Row {
	chosen := make([][]float64, len(to))
	for _, members := range byGroup(rows, to) {
		if int64(len(members)) <= k {
			for _, r := range members {
				chosen[r.I] = r.V
			}
			continue
		}
		choose(op, k, members, chosen, room)
	}
	out := make([]Row, 0, len(rows))
	for i, v := range chosen {
		if v != nil {
			out = append(out, Row{uint32(i), v})
		}
	}
	return out
}

// choose writes the chosen values of a group, by ordinal.
func choose(op string, k int64, members []Row, chosen [][]float64, room Room) {
	h := ranking{bottom: op == "bottomk", all: make([]candidate, 0, k)}
	steps := len(members[0].V)
	for step := range steps {
		h.all = h.all[:0]
		for _, r := range members {
			f := r.V[step]
			switch {
			case value.IsStaleNaN(f):
			case int64(len(h.all)) < k:
				h.push(candidate{f, r.I})
			case op != "limitk":
				h.offer(candidate{f, r.I})
			}
		}
		for _, c := range h.all {
			if chosen[c.i] == nil {
				chosen[c.i] = room.Blank(steps)
			}
			chosen[c.i][step] = c.v
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
