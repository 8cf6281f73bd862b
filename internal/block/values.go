package block

import (
	"math"
	"math/bits"
	"slices"

	"github.com/prometheus/prometheus/model/value"
)

// Divisors that mark a sample whose bits are in v_raw as they are, with v_int 0.
const (
	divRaw   = -1 // any double
	divStale = -2 // the stale marker, 0x7ff0000000000002
)

const (
	maxScale = 12      // decimals that are looked for
	maxInt   = 1 << 53 // |v_int| stays below: such integers are exact doubles
	// maxNoise is how far (in units in the last place) a value with rounding noise may be from its decimal.
	maxNoise = 64
	// maxMiss is the inverse of the share of a series' samples that may miss its decimals: a miss costs eight bytes, one more decimal
	// costs 3.3 bits in each of the others.
	maxMiss = 16
)

var pow10 = [maxScale + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// Columns are the three value columns of a run of samples, aligned. A sample's value is Raw + Int/Div, bit for bit:
//
//	Div = 10^k / 2^s      Int is the value in units of 1/Div, |Int| < 2^53; Raw is 0, or what the value is off by; k ≤ 12, s any integer
//	Div = -1              Raw is the value, Int is 0
//	Div = -2              Raw is the stale marker, Int is 0
//
// The sum keeps every number, ±Inf and -0 (x + 0/-1 = x + -0); of a NaN it keeps the payload but may set the quiet bit,
// so readers that care take Raw's bits where Div is negative, as DecodeValues does.
type Columns struct {
	Int []int64
	Div []float64
	Raw []float64
}

// Len returns the number of samples.
func (c *Columns) Len() int { return len(c.Int) }

// Reset empties the columns and keeps their memory.
func (c *Columns) Reset() { c.Int, c.Div, c.Raw = c.Int[:0], c.Div[:0], c.Raw[:0] }

// extend appends n zero samples and returns them.
func (c *Columns) extend(n int) Columns {
	at := len(c.Int)
	c.Int = slices.Grow(c.Int, n)[:at+n]
	c.Div = slices.Grow(c.Div, n)[:at+n]
	c.Raw = slices.Grow(c.Raw, n)[:at+n]
	tail := Columns{c.Int[at:], c.Div[at:], c.Raw[at:]}
	clear(tail.Raw)
	return tail
}

// Encoder finds a divisor for every series. The zero value is ready; it belongs to one goroutine.
type Encoder struct {
	scale int // of the last series: series of a family mostly have the same
}

// Encode appends the samples of one series to dst. Every one is checked: decoding gives its bits back.
func (e *Encoder) Encode(dst *Columns, vals []float64) {
	if len(vals) == 0 {
		return
	}
	out := dst.extend(len(vals))
	k := e.guess(vals)
	if k <= maxScale {
		if far := out.store(pow10[k], vals); far*maxMiss > len(vals) {
			clear(out.Raw)
			if k = survey(vals, 1).choose(); k <= maxScale {
				out.store(pow10[k], vals)
			}
		}
	}
	if k <= maxScale {
		e.scale = k
		out.reduce(pow10[k])
	} else if p, ok := binaryScale(vals); ok {
		out.store(p, vals)
		out.reduce(p)
	} else {
		out.storeRaw(vals)
	}
}

// store writes vals as multiples of 1/p, with Div p or negative, and returns how many are far from one. Raw must be zero.
func (c *Columns) store(p float64, vals []float64) (far int) {
	ints, div := c.Int[:len(vals)], c.Div[:len(vals)]
	for j, v := range vals {
		div[j] = p
		x := v * p
		if math.Abs(x) < maxInt { // false for NaN
			i := int64(math.RoundToEven(x))
			ints[j] = i
			if math.Float64bits(float64(i)/p) == math.Float64bits(v) {
				continue
			}
		}
		if !c.storeMiss(j, v, p) {
			far++
		}
	}
	return far
}

// storeMiss writes a value that is no multiple of 1/p and says whether it is one with rounding noise (or nothing
// that integers could be).
func (c *Columns) storeMiss(j int, v, p float64) (near bool) {
	x := v * p
	if math.Abs(x) < maxInt && v != 0 {
		i := int64(math.RoundToEven(x))
		q := float64(i) / p
		if r := v - q; r+q == v { // exact: q is within a factor of two of v (Sterbenz's lemma), or 0
			c.Int[j], c.Raw[j] = i, r
			return math.Abs(r) <= maxNoise*ulp(v)
		}
	}
	c.raw(j, v)
	return special(v)
}

func (c *Columns) storeRaw(vals []float64) {
	for j, v := range vals {
		c.raw(j, v)
	}
}

func (c *Columns) raw(j int, v float64) {
	c.Int[j], c.Raw[j], c.Div[j] = 0, v, divRaw
	if value.IsStaleNaN(v) {
		c.Div[j] = divStale
	}
}

// reduce divides the integers of a series by their common power of two, and the divisor p with them: memory comes in pages, disk
// in sectors. The quotients stay what they were, bit for bit, for p/2^s is exact and division is correctly rounded.
func (c *Columns) reduce(p float64) {
	var all int64
	for _, i := range c.Int {
		all |= i
	}
	s := bits.TrailingZeros64(uint64(all))
	if s == 0 || all == 0 {
		return
	}
	d := math.Ldexp(p, -s)
	for j := range c.Int {
		c.Int[j] >>= s
		if c.Div[j] > 0 {
			c.Div[j] = d
		}
	}
}

// special says whether v is no number, or one that integers cannot carry.
func special(v float64) bool { return v-v != 0 || v == 0 }

// ulp returns the distance from |v| to the next double.
func ulp(v float64) float64 {
	v = math.Abs(v)
	return math.Float64frombits(math.Float64bits(v)+1) - v
}

// DecodeValues appends the values of samples to dst. ints, div and raw are as long as one another.
func DecodeValues(dst []float64, ints []int64, div, raw []float64) []float64 {
	at := len(dst)
	dst = slices.Grow(dst, len(ints))[:at+len(ints)]
	out := dst[at:]
	div, raw = div[:len(out)], raw[:len(out)]
	for j, i := range ints {
		if d := div[j]; d > 0 {
			out[j] = raw[j] + float64(i)/d
		} else {
			out[j] = raw[j]
		}
	}
	return dst
}
