package block

import (
	"math"
	"math/bits"
	"slices"
)

// maxInt bounds |v_int|: integers up to it are exact doubles.
const maxInt = 1 << 53

// Divisors of values that have none in the usual sense.
const (
	divNegZero = -1                          // of 0: the quotient is -0
	divInf     = math.SmallestNonzeroFloat64 // of ±1: the quotient overflows to ±Inf
)

// Columns are the two value columns of a run of samples, aligned. A sample's value is Int/Div, bit
// for bit:
//
//	Div finite   the value is the quotient, rounded as IEEE 754 does; |Int| ≤ 2^53
//	Div NaN      the value is Div itself, payload and all; Int is 0
//	Div +Inf     Int is the bits of the value, which is nearer to 0 than 2^-971,
//	             so that no double is a divisor for it
//
// So the mere quotient is every value except for the payload of NaNs, and for values of the last
// kind, for which it is 0 or -0.
type Columns struct {
	Int []int64
	Div []float64
}

// Len returns the number of samples.
func (c *Columns) Len() int { return len(c.Int) }

// Reset empties the columns and keeps their memory.
func (c *Columns) Reset() { c.Int, c.Div = c.Int[:0], c.Div[:0] }

// extend appends n samples, for the caller to write, and returns them.
func (c *Columns) extend(n int) Columns {
	at := len(c.Int)
	c.Int = slices.Grow(c.Int, n)[:at+n]
	c.Div = slices.Grow(c.Div, n)[:at+n]
	return Columns{c.Int[at:], c.Div[at:]}
}

// Value returns the value of a sample whose columns are i and div.
func Value(i int64, div float64) float64 {
	if div <= math.MaxFloat64 {
		return float64(i) / div
	}
	return undivided(i, div)
}

// undivided is the value of a sample whose divisor is no finite number.
func undivided(i int64, div float64) float64 {
	if div != div {
		return div
	}
	return math.Float64frombits(uint64(i))
}

// gives reports whether decoding i and div returns v, bit for bit.
func gives(i int64, div, v float64) bool {
	return math.Float64bits(Value(i, div)) == math.Float64bits(v)
}

const (
	maxScale = 12 // most decimals
	// maxNoise is the largest distance (in units in the last place) of a value with rounding noise
	// from its decimal.
	maxNoise = 64
)

var pow10 = [maxScale + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// scales counts the values of a series by their number of decimals.
type scales struct {
	n     int               // values that could be decimals
	exact [maxScale + 2]int // by the smallest scale at which the value is a decimal; the last: none
	near  [maxScale + 2]int // by the smallest scale at which it is one but for rounding noise
}

// guess returns the scale of a series from a few of its values, or one above maxScale if it has
// none.
func (e *Encoder) guess(vals []float64) int {
	step := 1
	if few := 4 + len(vals)/64; few < len(vals) {
		step = len(vals) / few
	}
	// The scale of the family is mostly that of the series: then only smaller scales remain to be
	// ruled out.
	if s := survey(vals, step); s.n > 0 {
		return s.choose()
	}
	return e.scale
}

// survey counts every step-th value.
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

// scaleOf returns the smallest number of decimals of v, exactly and up to rounding noise;
// maxScale+1 if there is none. Noise must be small compared with the last decimal, or every value
// would be near one.
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

// choose returns the smallest scale that all but one in maxMiss of the values have exactly; else
// the smallest with noise, made fine enough for it; else one above maxScale.
func (s scales) choose() int {
	if k := quantile(&s.exact, s.n); k <= maxScale {
		return k
	}
	if k := quantile(&s.near, s.n); k <= maxScale {
		return fineScale(k)
	}
	return maxScale + 1
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

// maxMiss is the inverse of the share of a series' samples that may not have its decimals. Such a
// sample costs the eight bytes of its own divisor; one more decimal costs 3.3 bits in each of the
// others.
const maxMiss = 16

// Encoder finds divisors for every series. The zero value is ready; it belongs to one goroutine.
type Encoder struct {
	scale int // of the last series: series of a family mostly have the same
}

// Encode appends the samples of one series to dst. It checks that decoding each returns its bits.
func (e *Encoder) Encode(dst *Columns, vals []float64) {
	if len(vals) == 0 {
		return
	}
	out := dst.extend(len(vals))
	if e.decimals(out, vals) {
		return
	}
	// The divisor for the largest of the values suits those of about its size: a clock, or a
	// counter of odd amounts.
	most := 0.0
	for _, v := range vals {
		if v-v == 0 {
			most = max(most, math.Abs(v))
		}
	}
	p := binaryDiv(most)
	out.reduce(p, out.storeBinary(p, vals))
}

// decimals writes a series as decimals of one scale, if it has one.
func (e *Encoder) decimals(out Columns, vals []float64) bool {
	k := e.guess(vals)
	if k > maxScale {
		return false
	}
	far, all := out.store(k, vals)
	if far*maxMiss > len(vals) {
		if k = survey(vals, 1).choose(); k > maxScale {
			return false
		}
		_, all = out.store(k, vals)
	}
	e.scale = k
	out.reduce(pow10[k], all)
	return true
}

// store writes vals as decimals of scale k. It returns how many have a divisor that is not next to
// the scale's, and the bitwise OR of the integers whose divisors are around it.
func (c *Columns) store(k int, vals []float64) (far int, all int64) {
	ints, div := c.Int[:len(vals)], c.Div[:len(vals)]
	p := pow10[k]
	noise := 2 * maxNoise * ulp(p) // a step of the divisor is up to two of the value
	last := p                      // noise comes in runs: try the divisor of the value before
	again := false                 // an equal value has the columns of the one before
	for j, v := range vals {
		if again && math.Float64bits(v) == math.Float64bits(vals[j-1]) {
			ints[j], div[j] = ints[j-1], div[j-1]
			continue
		}
		again = false
		x := v * p
		if math.Abs(x) < maxInt { // false for NaN
			i := int64(math.RoundToEven(x))
			if gives(i, last, v) {
				ints[j], div[j] = i, last
				all |= i
				again = true
				continue
			}
			if last != p && gives(i, p, v) {
				last = p
				ints[j], div[j] = i, p
				all |= i
				continue
			}
		}
		i, d := fit(v, k)
		ints[j], div[j] = i, d
		if around(d, p) {
			all |= i
		}
		switch {
		case special(v):
		case math.Abs(d-p) <= noise:
			last = d
		default:
			far++
		}
	}
	return far, all
}

// around reports whether d is less than a factor of two away from p. reduce finds one power of two
// for such divisors.
func around(d, p float64) bool { return d > p/2 && d < p*2 }

// reduce divides the integers of a series and their divisors by the integers' common power of two.
// The quotients keep their bits, because division is correctly rounded and the divisors stay exact.
// Samples whose divisors are not around p are not changed; all is the bitwise OR of the integers of
// the others.
func (c *Columns) reduce(p float64, all int64) {
	const normal = 0x1p-1000 // smaller divisors could be rounded
	s := bits.TrailingZeros64(uint64(all))
	f := math.Ldexp(1, -s)
	if s == 0 || all == 0 || p*f < normal {
		return
	}
	for j := range c.Int {
		if d := c.Div[j]; around(d, p) {
			c.Int[j] >>= s
			c.Div[j] = d * f
		}
	}
}
