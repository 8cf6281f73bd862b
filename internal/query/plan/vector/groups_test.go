package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
	"github.com/stretchr/testify/require"
)

// TestSumsOfAnyNumbers: sums and averages have the bits of upstream's, whatever the numbers are.
func TestSumsOfAnyNumbers(t *testing.T) {
	const steps = 40
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []func() float64{
		func() float64 { return float64(rng.IntN(10_000)) / 100 },
		func() float64 { return math.Ldexp(rng.NormFloat64(), rng.IntN(200)-100) },
		func() float64 { return math.MaxFloat64 * rng.NormFloat64() / 2 },
		func() float64 { return math.Ldexp(math.MaxFloat64, -rng.IntN(3)) * float64(rng.IntN(3)-1) },
		func() float64 { return float64(rng.IntN(9)-4) * math.SmallestNonzeroFloat64 },
		func() float64 { return []float64{0, math.Copysign(0, -1), 1, -1}[rng.IntN(4)] },
		func() float64 { return []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1.1}[min(rng.IntN(40), 3)] },
	}
	room := Room(func(n int) []float64 { return make([]float64, n) })
	for round := range 3000 {
		members := make([]Row, 1+rng.IntN(8))
		for i := range members {
			members[i] = Row{uint32(i), room(steps)}
			for k := range steps {
				if members[i].V[k] = kinds[round%len(kinds)](); rng.IntN(8) == 0 {
					members[i].V[k] = Absent
				}
			}
		}
		sums, averages := room.Blank(steps), room.Blank(steps)
		sumOf(sums, members, room)
		averageOf(averages, members, room)
		for k := range steps {
			sum, mean := Absent, Absent
			c, some := 0.0, false
			for _, r := range members {
				switch {
				case value.IsStaleNaN(r.V[k]):
				case !some:
					sum, some = r.V[k], true
				default:
					sum, c = kahansum.Inc(r.V[k], sum, c)
				}
			}
			if some {
				sum += c
				mean, _ = average(members, k)
			}
			requireBits(t, sum, sums[k])
			requireBits(t, mean, averages[k])
		}
	}
}

// requireBits expects equal bits, but of NaN only that both are Absent or none is.
func requireBits(t *testing.T, want, got float64) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		require.Equal(t, value.IsStaleNaN(want), value.IsStaleNaN(got))
		return
	}
	require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v, want %v", got, want)
}
