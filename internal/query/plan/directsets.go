package plan

import (
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

func (n *maskNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	masks, keepMasked := n.r.masks(in[1], t.Room), n.op == "and"
	out := make([]Row, 0, len(in[0]))
	for _, r := range in[0] {
		if n.to[r.I] == ordinals.None {
			continue
		}
		if v, ok := masked(r.V, masks[n.lk[r.I]], keepMasked, t.Room); ok {
			out = append(out, Row{n.to[r.I], v})
		}
	}
	return out, nil
}

// masks returns, by key, values that are present where any series of the key has one.
func (p *presence) masks(rows []Row, room Room) map[uint32][]float64 {
	out := make(map[uint32][]float64, len(rows))
	own := map[uint32]bool{} // masks that are no rows' values
	for _, r := range rows {
		k := p.keys[r.I]
		if k == ordinals.None {
			continue
		}
		mask, again := out[k]
		if !again {
			out[k] = r.V
			continue
		}
		if !own[k] {
			mask, own[k] = append(room(len(mask))[:0], mask...), true
			out[k] = mask
		}
		for s, f := range r.V {
			if !value.IsStaleNaN(f) {
				mask[s] = f
			}
		}
	}
	return out
}

// masked returns the values at the steps at which a mask, which may be nil, has one or has none. It
// reports whether there is any.
func masked(v, mask []float64, where bool, room Room) (out []float64, any bool) {
	if mask == nil {
		return v, !where
	}
	out = room(len(v))
	for k, f := range v {
		if value.IsStaleNaN(mask[k]) == where {
			f = absent
		}
		out[k] = f
		any = any || !value.IsStaleNaN(f)
	}
	return out, any
}

func (n *orNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	masks := map[uint32][]float64{}
	if n.masked {
		left := presence{of: n.l, keys: n.lk}
		masks = left.masks(in[0], t.Room)
	}
	out := make([]Row, 0, len(in[0])+len(in[1]))
	for _, r := range in[0] {
		if n.merged { // union changes it
			r.V = append(t.Room(len(r.V))[:0], r.V...)
		}
		out = append(out, r)
	}
	for _, r := range in[1] {
		if v, ok := masked(r.V, masks[n.rk[r.I]], false, t.Room); ok {
			out = append(out, Row{n.to[r.I], v})
		}
	}
	return union(out), nil
}
