package vector

import (
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// Masks returns, by key, values that are present where any series of the key has one. keys
// has the key of each ordinal.
func Masks(rows []Row, keys []uint32, room Room) map[uint32][]float64 {
	out := make(map[uint32][]float64, len(rows))
	own := map[uint32]bool{} // masks that are no rows' values
	for _, r := range rows {
		k := keys[r.I]
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

// Masked returns the values at the steps at which a mask, which may be nil, has one or has none. It
// reports whether there is any.
func Masked(v, mask []float64, where bool, room Room) (out []float64, any bool) {
	if mask == nil {
		return v, !where
	}
	out = room(len(v))
	for k, f := range v {
		if value.IsStaleNaN(mask[k]) == where {
			f = Absent
		}
		out[k] = f
		any = any || !value.IsStaleNaN(f)
	}
	return out, any
}
