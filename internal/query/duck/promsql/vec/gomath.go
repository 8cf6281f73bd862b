package vec

/*
#include "gomath.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"
)

// absentBits are the bits of a value that is no value: Prometheus's stale marker.
const absentBits = 0x7ff0000000000002

var unaries = [C.PROM_GO_UNARY]func(float64) float64{
	C.PROM_GO_EXP:   math.Exp,
	C.PROM_GO_LN:    math.Log,
	C.PROM_GO_LOG2:  math.Log2,
	C.PROM_GO_LOG10: math.Log10,
	C.PROM_GO_SIN:   math.Sin,
	C.PROM_GO_COS:   math.Cos,
	C.PROM_GO_TAN:   math.Tan,
	C.PROM_GO_ASIN:  math.Asin,
	C.PROM_GO_ACOS:  math.Acos,
	C.PROM_GO_ATAN:  math.Atan,
	C.PROM_GO_SINH:  math.Sinh,
	C.PROM_GO_COSH:  math.Cosh,
	C.PROM_GO_TANH:  math.Tanh,
	C.PROM_GO_ASINH: math.Asinh,
	C.PROM_GO_ACOSH: math.Acosh,
	C.PROM_GO_ATANH: math.Atanh,

	C.PROM_GO_MINUTE:        date(time.Time.Minute),
	C.PROM_GO_HOUR:          date(time.Time.Hour),
	C.PROM_GO_DAY_OF_MONTH:  date(time.Time.Day),
	C.PROM_GO_DAY_OF_WEEK:   date(func(t time.Time) int { return int(t.Weekday()) }),
	C.PROM_GO_DAY_OF_YEAR:   date(time.Time.YearDay),
	C.PROM_GO_DAYS_IN_MONTH: date(func(t time.Time) int { return 32 - time.Date(t.Year(), t.Month(), 32, 0, 0, 0, 0, time.UTC).Day() }),
	C.PROM_GO_MONTH:         date(func(t time.Time) int { return int(t.Month()) }),
	C.PROM_GO_YEAR:          date(time.Time.Year),
}

// date returns a function of the date whose Unix time in seconds is a value.
func date(f func(time.Time) int) func(float64) float64 {
	return func(v float64) float64 { return float64(f(time.Unix(int64(v), 0).UTC())) }
}

var binaries = [C.PROM_GO_BINARY]func(a, b float64) float64{
	C.PROM_GO_POW:   math.Pow,
	C.PROM_GO_ATAN2: math.Atan2,
}

func floats(p *C.double, n C.size_t) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(p)), n)
}

func absent(v float64) bool { return math.Float64bits(v) == absentBits }

// Functions keep the bits of NaN, so no result becomes an absent value; only those of a date have a
// number for NaN.
//
//export promGoUnary
func promGoUnary(fn C.int, v *C.double, n C.size_t) {
	f, values := unaries[fn], floats(v, n)
	for i, x := range values {
		if x == x || fn >= C.PROM_GO_MINUTE && !absent(x) {
			values[i] = f(x)
		}
	}
}

//export promGoBinary
func promGoBinary(fn C.int, l *C.double, ls C.size_t, r *C.double, rs C.size_t, out *C.double, n C.size_t) {
	f := binaries[fn]
	left, right, values := floats(l, (n-1)*ls+1), floats(r, (n-1)*rs+1), floats(out, n)
	for i := range values {
		a, b := left[i*int(ls)], right[i*int(rs)]
		if absent(a) || absent(b) {
			values[i] = math.Float64frombits(absentBits)
		} else {
			values[i] = canonical(f(a, b))
		}
	}
}

// canonical keeps a NaN that a function passed on from looking like an absent value.
func canonical(v float64) float64 {
	if v != v {
		return math.NaN()
	}
	return v
}
