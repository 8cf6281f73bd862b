package vector

import (
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// Join appends to out, with ordinal i, the results of an operator over two lists, if there is any.
func Join(out []Row, i uint32, f promsql.Operator, l, r []float64, room Room) []Row {
	if v := room(len(l)); f.Apply(v, l, r) {
		out = append(out, Row{i, v})
	}
	return out
}

// Map applies a function of one value, named as in PromQL ("neg" is the unary minus), to all values.
// params are its parameters, one value per step.
func Map(fn string, rows []Row, params [][]float64, room Room) []Row {
	f := promsql.FunctionOf(fn)
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		if v := room(len(r.V)); f.Apply(v, r.V, params...) {
			out = append(out, Row{r.I, v})
		}
	}
	return out
}

// Masks returns, by key, values that are present where any series of the key has one. keys
// has the key of each ordinal.
func Masks(rows []Row, keys []uint32, room Room) map[uint32][]float64 {
	either := promsql.OperatorOf("or")
	out := make(map[uint32][]float64, len(rows))
	for _, r := range rows {
		switch mask, k := out[keys[r.I]], keys[r.I]; {
		case k == NoOrdinal:
		case mask == nil:
			out[k] = r.V
		default:
			out[k] = room(len(mask))
			either.Apply(out[k], mask, r.V)
		}
	}
	return out
}

// Union sorts rows by ordinal, and merges rows of the same ordinal: at each step the first of them
// that has a value decides. It changes the rows, but not their values.
func Union(rows []Row, room Room) []Row {
	either := promsql.OperatorOf("or")
	Sort(rows)
	out := rows[:0]
	for _, r := range rows {
		if last := len(out) - 1; last >= 0 && out[last].I == r.I {
			v := room(len(r.V))
			either.Apply(v, out[last].V, r.V)
			out[last].V = v
			continue
		}
		out = append(out, r)
	}
	return out
}
