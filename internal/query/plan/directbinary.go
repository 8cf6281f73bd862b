package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// numbers are the operators of prom_binary that return a number for any two.
// Source: vectorElemBinop in upstream's promql/engine.go.
var numbers = map[string]func(a, b float64) float64{
	"+":     func(a, b float64) float64 { return a + b },
	"-":     func(a, b float64) float64 { return a - b },
	"*":     func(a, b float64) float64 { return a * b },
	"/":     func(a, b float64) float64 { return a / b },
	"%":     math.Mod,
	"^":     math.Pow,
	"atan2": math.Atan2,
}

// comparisons are its other operators, without the prefix that says what they return.
var comparisons = map[string]func(a, b float64) bool{
	"==": func(a, b float64) bool { return a == b },
	"!=": func(a, b float64) bool { return a != b },
	">":  func(a, b float64) bool { return a > b },
	"<":  func(a, b float64) bool { return a < b },
	">=": func(a, b float64) bool { return a >= b },
	"<=": func(a, b float64) bool { return a <= b },
}

// operatorOf returns an operator of prom_binary on two values of which none is absent.
func operatorOf(name string) func(a, b float64) float64 {
	if f := numbers[name]; f != nil {
		return f
	}
	if bare, ok := strings.CutPrefix(name, "bool"); ok {
		holds := comparisons[bare]
		return func(a, b float64) float64 {
			if holds(a, b) {
				return 1
			}
			return 0
		}
	}
	bare, right := strings.CutPrefix(name, "r")
	holds := comparisons[bare]
	return func(a, b float64) float64 {
		switch {
		case !holds(a, b):
			return absent
		case right:
			return b
		}
		return a
	}
}

// apply writes the results of an operator over two lists. It reports whether there is any.
func apply(f func(a, b float64) float64, out, l, r []float64) (any bool) {
	for k, a := range l {
		b := r[k]
		if value.IsStaleNaN(a) || value.IsStaleNaN(b) {
			out[k] = absent
			continue
		}
		out[k] = f(a, b)
		any = any || !value.IsStaleNaN(out[k])
	}
	return any
}

func (n *joinNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	if n.pairs != nil {
		return n.computePairs(in[0], in[1], t.Room), nil
	}
	many, one, manyKeys, oneKeys := in[0], in[1], n.lk, n.rk
	if !n.manyLeft {
		many, one, manyKeys, oneKeys = one, many, oneKeys, manyKeys
	}
	byKey := make(map[uint32][]float64, len(one))
	for _, r := range one {
		if k := oneKeys[r.I]; k != ordinals.None {
			byKey[k] = r.V
		}
	}
	f, out := operatorOf(n.op), make([]Row, 0, len(many))
	for _, r := range many {
		other := byKey[manyKeys[r.I]]
		if other == nil {
			continue
		}
		left, right := r.V, other
		if !n.manyLeft {
			left, right = right, left
		}
		if v := t.Room(len(left)); apply(f, v, left, right) {
			out = append(out, Row{n.to[r.I], v})
		}
	}
	if n.merged {
		out = union(out)
	}
	return out, nil
}

// computePairs evaluates the pairs of series that have an output.
func (n *joinNode) computePairs(l, r []Row, room Room) (out []Row) {
	byKey := make(map[uint32][]Row, len(r))
	for _, right := range r {
		if k := n.rk[right.I]; k != ordinals.None {
			byKey[k] = append(byKey[k], right)
		}
	}
	f := operatorOf(n.op)
	for _, left := range l {
		for _, right := range byKey[n.lk[left.I]] {
			to, ok := n.pairs[uint64(left.I)<<32|uint64(right.I)]
			if !ok {
				continue
			}
			if v := room(len(left.V)); apply(f, v, left.V, right.V) {
				out = append(out, Row{to, v})
			}
		}
	}
	return union(out)
}

// union sorts rows, and makes one of those that have an ordinal: its values are those of the first
// row that has one. It changes the rows.
func union(rows []Row) []Row {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.I, b.I) })
	out := rows[:0]
	for _, r := range rows {
		if len(out) == 0 || out[len(out)-1].I != r.I {
			out = append(out, r)
			continue
		}
		for k, f := range out[len(out)-1].V {
			if value.IsStaleNaN(f) {
				out[len(out)-1].V[k] = r.V[k]
			}
		}
	}
	return out
}

func (n *scaleNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	vector, number := in[0], in[1]
	if n.swap {
		vector, number = number, vector
	}
	f, out := operatorOf(n.op), make([]Row, 0, len(vector))
	for _, r := range vector {
		left, right := r.V, number[0].V
		if n.swap {
			left, right = right, left
		}
		if v := t.Room(len(left)); apply(f, v, left, right) {
			out = append(out, Row{r.I, v})
		}
	}
	return out, nil
}

func (n *pairNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	v := t.Room(n.shape.Grid.N)
	apply(operatorOf(n.op), v, in[0][0].V, in[1][0].V)
	return []Row{{0, v}}, nil
}
