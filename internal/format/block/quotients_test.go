package block

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDivideFused: products with reciprocals have the bits of quotients, also where these are near to
// the middle between two doubles.
func TestDivideFused(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	divs := []float64{2, 3, 7, 60, 3600, 1 << 20, mostFused, mostFused - 1}
	for d := 10.0; d <= mostFused; d *= 10 {
		divs = append(divs, d, d-1, d+1)
	}
	for range 200 {
		divs = append(divs, float64(2+rng.Int64N(mostFused>>rng.IntN(46))))
	}
	for _, div := range divs {
		ints := []int64{0, 1, -1, maxInt, -maxInt, maxInt - 1, math.MaxInt64, math.MinInt64, int64(div), int64(div) - 1, int64(div) + 1}
		for range 2000 {
			ints = append(ints, rng.Int64()>>rng.IntN(63), -rng.Int64()>>rng.IntN(63))
			middle := math.Ldexp(float64(1<<52|rng.Int64N(1<<52))+0.5, rng.IntN(60)-60) // mostly of 53 bits
			if x := middle * div; x < maxInt {
				ints = append(ints, int64(x), int64(x)+1, -int64(x))
			}
		}
		v, want := make([]float64, len(ints)), make([]uint64, len(ints))
		copy(intsOf(v), ints)
		for i, x := range ints {
			want[i] = math.Float64bits(float64(x) / div)
		}
		divideFused(v, div)
		for i := range v {
			if math.Float64bits(v[i]) != want[i] {
				require.Equal(t, want[i], math.Float64bits(v[i]), "%d / %v", ints[i], div)
			}
		}
	}
}

// TestDivideAll: all divisors give what Value gives.
func TestDivideAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	divs := []float64{
		1, 0.5, 10, 100, 1e9, 1e15, 1e22, math.Nextafter(100, 0), math.Nextafter(100, 200), math.Nextafter(1, 2),
		0x1p-300, 0x1p300, divNegZero, divInf, math.Inf(1), math.NaN(), math.Float64frombits(0x7ff8000000000123),
	}
	for _, div := range divs {
		ints := make([]int64, 100)
		for i := range ints {
			ints[i] = (rng.Int64N(2*maxInt+1) - maxInt) >> rng.IntN(53)
		}
		v := make([]float64, len(ints))
		copy(intsOf(v), ints)
		divideAll(v, div)
		for i, x := range ints {
			require.Equal(t, math.Float64bits(Value(x, div)), math.Float64bits(v[i]), "%d / %v", x, div)
		}
	}
}

func BenchmarkDivideAll(b *testing.B) {
	v := make([]float64, 1024)
	for name, div := range map[string]float64{"1": 1, "100": 100, "100.00000000000001": math.Nextafter(100, 200)} {
		b.Run("div="+name, func(b *testing.B) {
			b.SetBytes(8 * int64(len(v)))
			for b.Loop() {
				for i := range intsOf(v) {
					intsOf(v)[i] = int64(i)
				}
				divideAll(v, div)
			}
		})
	}
}
