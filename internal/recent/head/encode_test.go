package head

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// shapes are ways in which values go on.
var shapes = []func(r *rand.Rand, before float64) float64{
	func(_ *rand.Rand, before float64) float64 { return before },
	func(r *rand.Rand, before float64) float64 { return math.Trunc(before) + float64(r.IntN(300)-20) },
	func(r *rand.Rand, before float64) float64 {
		return (math.Round(before*100) + float64(r.IntN(3000))) / 100
	},
	func(r *rand.Rand, _ float64) float64 { return r.NormFloat64() },
	func(r *rand.Rand, _ float64) float64 { return math.Float64frombits(r.Uint64()) },
	func(r *rand.Rand, _ float64) float64 { return float64(r.Int64N(1<<54) - 1<<53) },
	func(r *rand.Rand, _ float64) float64 {
		some := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(0x7ff0000000000002), 1 << 53, -1 << 53, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 100, 1e15 + 0.5}
		return some[r.IntN(len(some))]
	},
}

// TestChains: what is read of random samples is what was appended, in each range, before and after
// some of it is forgotten.
func TestChains(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		var c nodes
		const n = 5
		var all [n]chain
		var ts [n][]int64
		var vs [n][]float64
		floor := int64(math.MinInt64)
		at, v := [n]int64{}, [n]float64{}
		for range 600 {
			ref := r.IntN(n)
			switch r.IntN(20) {
			case 0:
				at[ref] += 1 + r.Int64N(1<<40)
			case 1:
				at[ref] += 1 + r.Int64N(100_000)
			case 2:
				at[ref] += 15_000 + r.Int64N(3)
			default:
				at[ref] += 15_000
			}
			shape := shapes[(int(seed)+ref)%len(shapes)]
			if r.IntN(10) == 0 {
				shape = shapes[r.IntN(len(shapes))]
			}
			v[ref] = shape(r, v[ref])
			c.append(&all[ref], at[ref], v[ref], floor)
			ts[ref], vs[ref] = append(ts[ref], at[ref]), append(vs[ref], v[ref])
			if r.IntN(100) == 0 {
				k := r.IntN(n)
				if len(ts[k]) > 0 {
					floor = max(floor, ts[k][r.IntN(len(ts[k]))])
				}
				for i := range all {
					c.forget(&all[i], floor)
				}
			}
		}
		for ref := range n {
			for range 20 {
				mint := floor + 1
				if floor == math.MinInt64 {
					mint = 0
				}
				mint, maxt := mint+r.Int64N(max(1, at[ref]-mint+10)), at[ref]-r.Int64N(max(1, at[ref]/2))
				var wantT []int64
				var want []uint64
				for i, x := range ts[ref] {
					if x >= mint && x <= maxt {
						wantT, want = append(wantT, x), append(want, math.Float64bits(vs[ref][i]))
					}
				}
				gotT, values := c.read(&all[ref], mint, maxt, nil, nil)
				var got []uint64
				for _, x := range values {
					got = append(got, math.Float64bits(x))
				}
				require.Equal(t, wantT, gotT, "seed %d", seed)
				require.Equal(t, want, got, "seed %d", seed)
				require.GreaterOrEqual(t, c.count(&all[ref], mint, maxt), len(got))
			}
		}
		for i := range all {
			c.forget(&all[i], math.MaxInt64)
		}
		require.Zero(t, c.held, "all nodes are free")
	}
}

// TestNodesAreUsedAgain: samples that are forgotten make room for later ones.
func TestNodesAreUsedAgain(t *testing.T) {
	var c nodes
	var s chain
	for i := range int64(100_000) {
		c.append(&s, i*15_000, float64(i)*math.Pi, math.MinInt64)
		c.forget(&s, (i-50)*15_000)
	}
	require.Less(t, c.n, uint32(20))
	got, _ := c.read(&s, 99_950*15_000, math.MaxInt64, nil, nil)
	require.Len(t, got, 50)
}

// TestConstants: of the thousands of samples of a constant, which are in one node, those that are read
// are counted, and are those of the range.
func TestConstants(t *testing.T) {
	var c nodes
	var s chain
	for i := range int64(3000) {
		c.append(&s, i*15_000, 7, math.MinInt64)
	}
	require.EqualValues(t, 1, c.n)
	for _, k := range []int64{0, 1, 126, 127, 128, 129, 2000, 2990} {
		mint, maxt := k*15_000-1, k*15_000+135_000
		got, v := c.read(&s, mint, maxt, nil, nil)
		require.Len(t, got, 10)
		require.Equal(t, k*15_000, got[0])
		require.Equal(t, k*15_000+135_000, got[9])
		require.Len(t, v, 10)
		require.EqualValues(t, 3000-k, c.count(&s, mint, maxt), "to the end of the node")
	}
}

// TestSizes: what usual series take.
func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		value func(i int) float64
		nodes int64
	}{
		"constant":   {func(int) float64 { return 3.25 }, 1},
		"counter":    {func(i int) float64 { return float64(1e9 + i*12_345) }, 4},
		"hundredths": {func(i int) float64 { return float64(123_456+i*731) / 100 }, 4},
		"random":     {func(i int) float64 { return 1 / float64(i+3) }, 10},
	} {
		var c nodes
		var s chain
		for i := range 48 { // twelve minutes
			c.append(&s, int64(1_700_000_000_000+i*15_000), tc.value(i), math.MinInt64)
		}
		require.LessOrEqual(t, c.held, tc.nodes, name)
	}
}
