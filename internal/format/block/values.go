package block

import (
	"math"
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

// DecodeValues appends the values of samples to dst. ints and div are as long as one another.
func DecodeValues(dst []float64, ints []int64, div []float64) []float64 {
	at := len(dst)
	dst = slices.Grow(dst, len(ints))[:at+len(ints)]
	out := dst[at:]
	div = div[:len(out)]
	for j, i := range ints {
		out[j] = Value(i, div[j])
	}
	return dst
}

// gives reports whether decoding i and div returns v, bit for bit.
func gives(i int64, div, v float64) bool {
	return math.Float64bits(Value(i, div)) == math.Float64bits(v)
}
