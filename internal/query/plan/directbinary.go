package plan

import (
	"math"
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

func (n *joinNode) computable() bool { return n.pairs == nil && !n.merged }

func (n *joinNode) compute(in [][]Row, room Room) ([]Row, error) {
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
		if v := room(len(left)); apply(f, v, left, right) {
			out = append(out, Row{n.to[r.I], v})
		}
	}
	return out, nil
}

func (n *scaleNode) computable() bool {
	_, number := n.scalar.(*constNode)
	return number
}

func (n *scaleNode) compute(in [][]Row, room Room) ([]Row, error) {
	number := room(n.shape.Grid.N)
	for k := range number {
		number[k] = n.scalar.(*constNode).value
	}
	f, out := operatorOf(n.op), make([]Row, 0, len(in[0]))
	for _, r := range in[0] {
		left, right := r.V, number
		if n.swap {
			left, right = right, left
		}
		if v := room(len(left)); apply(f, v, left, right) {
			out = append(out, Row{r.I, v})
		}
	}
	return out, nil
}
