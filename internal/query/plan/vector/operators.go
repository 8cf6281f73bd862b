package vector

import (
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/value"
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

// Operator is a function of two values of which none is absent. The result may be absent.
type Operator func(a, b float64) float64

// OperatorOf returns an operator by its name for prom_binary: that of PromQL; with the prefix "bool", a
// comparison returns 0 or 1; with the prefix "r", it keeps the right value instead of the left.
func OperatorOf(name string) Operator {
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
			return Absent
		case right:
			return b
		}
		return a
	}
}

// Apply writes the results of the operator over two lists. It reports whether there is any.
func (f Operator) Apply(out, l, r []float64) (any bool) {
	for k, a := range l {
		b := r[k]
		if value.IsStaleNaN(a) || value.IsStaleNaN(b) {
			out[k] = Absent
			continue
		}
		out[k] = f(a, b)
		any = any || !value.IsStaleNaN(out[k])
	}
	return any
}
