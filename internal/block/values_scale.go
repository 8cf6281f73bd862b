package block

import (
	"math"
	"math/bits"
)

// scales counts the values of a series by the decimals that they need.
type scales struct {
	n     int               // values that could be decimals
	exact [maxScale + 2]int // by the smallest scale at which the value is a decimal; the last: none
	near  [maxScale + 2]int // by the smallest scale at which it is one but for rounding noise
}

// guess returns the scale of a series from a few of its values, or one above maxScale if it has none.
func (e *Encoder) guess(vals []float64) int {
	step := 1
	if few := 4 + len(vals)/64; few < len(vals) {
		step = len(vals) / few
	}
	// What holds for the family holds mostly for the series: then only smaller scales remain to be ruled out.
	if s := survey(vals, step); s.n > 0 {
		return s.choose()
	}
	return e.scale
}

// survey looks at every step-th value.
func survey(vals []float64, step int) scales {
	var s scales
	for j := 0; j < len(vals); j += step {
		v := vals[j]
		if special(v) && math.Float64bits(v) != 0 {
			continue
		}
		s.n++
		exact, near := scaleOf(v)
		s.exact[exact]++
		s.near[near]++
	}
	return s
}

// scaleOf returns the smallest number of decimals of v, exactly and but for rounding noise; maxScale+1 if there is none.
// Noise must be small beside the last decimal, else every value would be near one.
func scaleOf(v float64) (exact, near int) {
	const beside = 8
	noise, near := maxNoise*ulp(v), maxScale+1
	for k, p := range pow10 {
		x := v * p
		if math.Abs(x) >= maxInt {
			break
		}
		q := math.RoundToEven(x) / p
		if q == v {
			return k, min(k, near)
		}
		if near > maxScale && math.Abs(v-q) <= noise && noise*beside*p < 1 {
			near = k
		}
	}
	return maxScale + 1, near
}

// choose returns the smallest scale that all but one in maxMiss of the values have: exactly, else with noise, else one above maxScale.
func (s scales) choose() int {
	if k := quantile(&s.exact, s.n); k <= maxScale {
		return k
	}
	return quantile(&s.near, s.n)
}

// quantile returns the smallest index up to which all but one in maxMiss of n are counted.
func quantile(counts *[maxScale + 2]int, n int) int {
	left := n
	for k, c := range counts {
		if left -= c; left*maxMiss <= n {
			return k
		}
	}
	return maxScale + 1
}

// maxStep is how many bits the steps of values that are no decimals may take on average for their integers to be worth it.
const maxStep = 40

// binaryScale returns a power of two p such that all but one in maxMiss of the values are multiples of 1/p, below 2^53/p: doubles of about
// the same size, such as a clock, or a counter of odd amounts. ok is false if there is none, or if the integers would go in steps so large
// that they are no smaller than the doubles.
func binaryScale(vals []float64) (p float64, ok bool) {
	most := 0.0
	for _, v := range vals {
		if v-v == 0 {
			most = max(most, math.Abs(v))
		}
	}
	const mantissa, maxExponent = 53, 900 // where p and 1/p are normal numbers
	_, e := math.Frexp(most)
	if most == 0 || max(e, -e) > maxExponent {
		return 0, false
	}
	p = math.Ldexp(1, mantissa-e)
	missed, steps, last := 0, 0, int64(0)
	for _, v := range vals {
		x := v * p
		i := int64(x)
		if special(v) || float64(i) != x {
			missed++
			continue
		}
		steps += bits.Len64(uint64(max(i-last, last-i)))
		last = i
	}
	return p, missed*maxMiss <= len(vals) && steps <= maxStep*len(vals)
}
