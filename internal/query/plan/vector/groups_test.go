package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// absent is the value of a step without one.
var absent = math.Float64frombits(value.StaleNaN)

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
	budget := promsql.NewBudget(0)
	defer func() { require.NoError(t, budget.Close()) }()
	m := Memory{func(n int) []float64 { return make([]float64, n) }, budget}
	for round := range 3000 {
		members := make([]Row, 1+rng.IntN(8))
		for i := range members {
			members[i] = Row{uint32(i), make([]float64, steps)}
			for k := range steps {
				if members[i].V[k] = kinds[round%len(kinds)](); rng.IntN(8) == 0 {
					members[i].V[k] = absent
				}
			}
		}
		one := make([]uint32, len(members))
		sums, err := Aggregate("sum", members, one, m)
		require.NoError(t, err)
		averages, err := Aggregate("avg", members, one, m)
		require.NoError(t, err)
		for k := range steps {
			sum, mean := upstreams(members, k)
			requireBits(t, sum, sums[0].V[k])
			requireBits(t, mean, averages[0].V[k])
		}
	}
}

// upstreams returns the sum and the average of series at a step as upstream's engine adds them up:
// the average continues with the mean of the series so far where the sum would be infinite.
func upstreams(members []Row, k int) (total, mean float64) {
	var sum, c, avg, ac, n float64
	running := false
	for _, r := range members {
		f := r.V[k]
		if value.IsStaleNaN(f) {
			continue
		}
		if n++; n == 1 {
			sum, avg = f, f
			continue
		}
		sum, c = kahansum.Inc(f, sum, c)
		if !running {
			s, next := kahansum.Inc(f, avg, ac)
			if !math.IsInf(s, 0) {
				avg, ac = s, next
				continue
			}
			running = true
			avg /= n - 1
			ac /= n - 1
		}
		q := (n - 1) / n
		avg, ac = kahansum.Inc(f/n, q*avg, q*ac)
	}
	switch {
	case n == 0:
		return absent, absent
	case running:
		return sum + c, avg + ac
	}
	return sum + c, avg/n + ac/n
}

// requireBits expects equal bits, but of NaN only that both are absent or none is.
func requireBits(t *testing.T, want, got float64) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		require.Equal(t, value.IsStaleNaN(want), value.IsStaleNaN(got))
		return
	}
	require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v, want %v", got, want)
}
