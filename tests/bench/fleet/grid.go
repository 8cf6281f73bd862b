package fleet

import "math"

// grid is the common divisor of the captured values of a series. Exporters compute a value in one
// of three ways, each with its own rounding noise: n·2^k (pages, sectors), n/10^d (printed
// decimals) and n·10^-d (scaled ticks: 8899·0.001 is 8.899000000000001).
type grid struct {
	step  float64 // 2^k or 10^d or 10^-d; 0 = no grid
	below bool    // the value is n/step rather than n·step
}

const (
	maxPower    = 30 // largest k of 2^k
	maxDecimals = 12 // largest d of 10^d
)

// gridOf returns the coarsest grid on which all values lie exactly.
func gridOf(values []float64) grid {
	for k := maxPower; k >= 0; k-- {
		if g := (grid{step: math.Ldexp(1, k)}); g.holds(values) {
			return g
		}
	}
	for d := 1; d <= maxDecimals; d++ {
		for _, g := range [...]grid{{step: math.Pow10(d), below: true}, {step: math.Pow10(-d)}} {
			if g.holds(values) {
				return g
			}
		}
	}
	return grid{}
}

func (g grid) holds(values []float64) bool {
	for _, v := range values {
		if math.Float64bits(g.round(v)) != math.Float64bits(v) {
			return false
		}
	}
	return true
}

// round returns the value of the grid nearest to v. It is monotone, so counters stay counters.
func (g grid) round(v float64) float64 {
	if g.step == 0 {
		return v
	}
	return g.value(g.steps(v))
}

// steps returns how many steps of the grid, which must have some, come nearest to v.
func (g grid) steps(v float64) float64 {
	if g.below {
		return math.Round(v * g.step)
	}
	return math.Round(v / g.step)
}

// value returns n steps of the grid, computed as the exporter does.
func (g grid) value(n float64) float64 {
	if g.below {
		return n / g.step
	}
	return n * g.step
}
