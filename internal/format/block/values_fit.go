package block

import (
	"math"
	"runtime"

	"golang.org/x/sys/cpu"
)

// fit returns columns for any value. The integer is near that of the decimals of scale k if there
// is a divisor for it.
func fit(v float64, k int) (i int64, div float64) {
	switch {
	case v != v:
		return 0, v
	case math.IsInf(v, 0):
		return int64(math.Copysign(1, v)), divInf
	case v == 0:
		if math.Signbit(v) {
			return 0, divNegZero
		}
		return 0, 1
	}
	if k <= maxScale {
		if i, div, ok := fitNear(v, pow10[k]); ok {
			return i, div
		}
	}
	return fitBinary(v)
}

// fitNear searches for columns whose divisor is near p, so that the integer is near those of the
// decimals around v.
func fitNear(v, p float64) (i int64, div float64, ok bool) {
	if math.Abs(v*p) >= maxInt/2 {
		return 0, 0, false
	}
	if i = int64(math.RoundToEven(v * p)); i != 0 {
		if div, ok = divisor(i, v); ok {
			return i, div, true
		}
	}
	// The least divisor of p's power of two, and so the least integer, that surely fits. Small
	// integers are far apart.
	const tries = 8
	least := math.Float64frombits(math.Float64bits(p)&^mantissaMask | math.Float64bits(v)&mantissaMask)
	size := int64(math.Ceil(math.Abs(v) * least))
	for n := size; n < size+tries; n++ {
		if i = n; v < 0 {
			i = -n
		}
		if div, ok = divisor(i, v); ok {
			return i, div, true
		}
	}
	return 0, 0, false
}

const (
	mantissaBits = 52
	mantissaMask = 1<<mantissaBits - 1
)

// divisor returns a divisor by which i gives v, if there is one. i and v are of the same sign and
// not 0.
//
// Divisors next to one another, in steps of 2^-52 of their power of two, give quotients that are
// mant(v)/mant(divisor) steps apart, with mantissas in [1, 2). So if the divisor's mantissa is the
// larger one there is a divisor for every v, else for a share of them. It is the quotient i/v, or
// next to it, where that was rounded or v is a power of two.
func divisor(i int64, v float64) (div float64, ok bool) {
	div = float64(i) / v
	for _, step := range [...]uint64{0, 1, ^uint64(0)} {
		if d := math.Float64frombits(math.Float64bits(div) + step); d <= math.MaxFloat64 && gives(i, d, v) {
			return d, true
		}
	}
	return 0, false
}

// fineScale returns the least scale, from k on, whose power of ten has a mantissa so near 2 that
// nearly every value has a divisor: 10^3 = 1.95·2^9, 10^6 = 1.91·2^19, 10^9 = 1.86·2^29, 10^12 =
// 1.82·2^39.
func fineScale(k int) int { return max(3, (k+2)/3*3) }

// fitBinary returns columns for a number that is not 0: its mantissa and a power of two, or its
// bits if there is no such power.
func fitBinary(v float64) (i int64, div float64) {
	p := binaryDiv(v)
	if i = int64(v * p); gives(i, p, v) {
		return i, p
	}
	return int64(math.Float64bits(v)), math.Inf(1)
}

// binaryDiv returns the power of two p for which |v|·p has 53 bits before the point, or the
// greatest power of two.
func binaryDiv(v float64) float64 {
	const bias = 1023
	e := int(math.Float64bits(v)>>mantissaBits&0x7ff) - bias // of the first bit, or less
	return math.Float64frombits(uint64(min(mantissaBits-e, bias)+bias) << mantissaBits)
}

// storeBinary writes vals as multiples of 1/p. A value that is no such multiple gets a power of two
// of its own, which the values after it share as long as it suits them. It returns the bitwise OR
// of the integers of the multiples.
func (c *Columns) storeBinary(p float64, vals []float64) (all int64) {
	ints, div := c.Int[:len(vals)], c.Div[:len(vals)]
	last := p
	for j, v := range vals {
		i, ok := multiple(v, last)
		if !ok {
			if i, ok = multiple(v, p); ok {
				last = p
			}
		}
		if ok {
			ints[j], div[j] = i, last
			if last == p {
				all |= i
			}
			continue
		}
		if ints[j], div[j] = fit(v, maxScale+1); !special(v) && div[j] <= math.MaxFloat64 {
			last = div[j]
		}
	}
	return all
}

// multiple returns v in units of 1/p, if it is a whole number of them.
func multiple(v, p float64) (i int64, ok bool) {
	x := v * p
	if math.Abs(x) <= maxInt { // false for NaN
		i = int64(x)
		return i, gives(i, p, v)
	}
	return 0, false
}

// special reports whether v is not finite or 0, which integers cannot represent with their sign.
func special(v float64) bool { return v-v != 0 || v == 0 }

// ulp returns the distance from |v| to the next double.
func ulp(v float64) float64 {
	v = math.Abs(v)
	return math.Float64frombits(math.Float64bits(v)+1) - v
}

// divideAll makes values of v, which holds integers that have one divisor.
func divideAll(v []float64, div float64) {
	ints := intsOf(v)
	switch {
	case div == 1:
		for i, x := range ints {
			v[i] = float64(x)
		}
	case fused && 1 < div && div <= mostFused && div == math.Trunc(div):
		divideFused(v, div)
	case div <= math.MaxFloat64:
		for i, x := range ints {
			v[i] = float64(x) / div
		}
	default:
		for i, x := range ints {
			v[i] = undivided(x, div)
		}
	}
}

// fused reports whether the processor adds to a product without rounding this first. Otherwise
// math.FMA takes longer than a division.
var fused = runtime.GOARCH == "arm64" || cpu.X86.HasFMA

// mostFused bounds the divisors of divideFused, with a margin of 2^5.
const mostFused = 1 << 46

// divideFused is divideAll for whole divisors of at most mostFused. It multiplies by the
// reciprocal, which takes a third of the time of a division, and has its bits:
//
//	hi + lo is the reciprocal but for 2^-106 of it, and rounding x*lo loses at most 2^-106 of the
//	quotient. So what is rounded in the end, once, differs from the quotient by at most 2^-105 of it.
//
//	It is rounded to another double only if the middle m between two doubles is not farther away. x
//	is a whole number X*2^t with |X| <= 2^53, and m is M*2^e with an odd M of 54 bits. The distance is
//	|X*2^t - div*M*2^e| / div. The difference is not 0, because div*M has an odd factor greater than
//	X; so it is at least 2^e, or 2^t if that is less: of x/div, at least 2^-54/div or 2^-53. Both are
//	more than 2^-105.
func divideFused(v []float64, div float64) {
	hi := 1 / div
	lo := math.FMA(-div, hi, 1) / div
	for i, x := range intsOf(v) {
		f := float64(x)
		v[i] = math.FMA(f, hi, f*lo)
	}
}
