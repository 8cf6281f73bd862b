package block

import (
	"math"
	"runtime"

	"golang.org/x/sys/cpu"
)

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

// divideFused is divideAll for whole divisors of at most mostFused. It multiplies by the reciprocal,
// which takes a third of the time of a division, and has its bits:
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
