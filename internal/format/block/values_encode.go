package block

import (
	"math"
	"math/bits"
)

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
