package vector

import (
	"math"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// Scalar returns, at each of n steps, the only value that rows have, or NaN if they have none or
// several.
func Scalar(rows []Row, n int, room Room) []float64 {
	v, seen := room.Fill(n, math.NaN()), make([]bool, n)
	for _, r := range rows {
		for k, f := range r.V {
			switch {
			case value.IsStaleNaN(f):
			case seen[k]:
				v[k] = math.NaN()
			default:
				v[k], seen[k] = f, true
			}
		}
	}
	return v
}

// Missing returns 1 at each of n steps at which no row has a value, and no value at the others. It
// reports whether there is such a step.
func Missing(rows []Row, n int, room Room) (out []float64, any bool) {
	out = room.Fill(n, 1)
	left := n
	for _, r := range rows {
		for k, f := range r.V {
			if !value.IsStaleNaN(f) && !value.IsStaleNaN(out[k]) {
				out[k] = Absent
				left--
			}
		}
	}
	return out, left > 0
}

// Replace returns the value of v at each step at which a row has a value.
func Replace(rows []Row, v []float64, room Room) []Row {
	out := make([]Row, len(rows))
	for i, r := range rows {
		at := room(len(r.V))
		for k, f := range r.V {
			if at[k] = Absent; !value.IsStaleNaN(f) {
				at[k] = v[k]
			}
		}
		out[i] = Row{r.I, at}
	}
	return out
}

// Renumber returns rows with the ordinals that to has for theirs, without those that it leaves out.
func Renumber(rows []Row, to []uint32) []Row {
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		if i := to[r.I]; i != ordinals.None {
			out = append(out, Row{i, r.V})
		}
	}
	return out
}
