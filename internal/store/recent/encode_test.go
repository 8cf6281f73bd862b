package recent

import (
	"math"
	"math/rand/v2"
	"reflect"
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
	func(r *rand.Rand, before float64) float64 {
		return (math.RoundToEven(before*1e9) + float64(r.IntN(1<<r.IntN(31)))) / 1e9
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
			checkReads(t, r, &c, &all[ref], ts[ref], vs[ref], floor, 20)
		}
		for i := range all {
			c.forget(&all[i], math.MaxInt64)
		}
		require.Zero(t, c.held, "all nodes are free")
		require.Zero(t, c.lines.times, "and all timelines")
	}
}

// checkReads compares what is read of a series in some ranges after floor with all of its samples.
func checkReads(t *testing.T, r *rand.Rand, c *nodes, s *chain, ts []int64, vs []float64, floor int64, ranges int) {
	t.Helper()
	latest := int64(0)
	if len(ts) > 0 {
		latest = ts[len(ts)-1]
	}
	for range ranges {
		mint := floor + 1
		if floor == math.MinInt64 {
			mint = 0
		}
		mint, maxt := mint+r.Int64N(max(1, latest-mint+10)), latest-r.Int64N(max(1, latest/2))
		var wantT []int64
		var want []uint64
		for i, x := range ts {
			if x >= mint && x <= maxt {
				wantT, want = append(wantT, x), append(want, math.Float64bits(vs[i]))
			}
		}
		gotT, own, values := c.read(s, mint, maxt, nil, nil)
		if gotT == nil {
			gotT = own
		}
		require.Equal(t, wantT, gotT)
		require.Equal(t, want, bitsOf(values))
		require.GreaterOrEqual(t, c.count(s, mint, maxt), len(values))
	}
	kept := len(ts) // samples after floor
	for kept > 0 && ts[len(ts)-kept] <= floor {
		kept--
	}
	if kept > 0 {
		end := len(ts) - r.IntN(kept)
		n := 1 + r.IntN(end-(len(ts)-kept))
		gotT, values := c.slice(s, s.had-uint32(len(ts)-end), uint32(n), nil, nil)
		require.Equal(t, ts[end-n:end], gotT)
		require.Equal(t, bitsOf(vs[end-n:end]), bitsOf(values))
	}
}

func bitsOf(values []float64) (out []uint64) {
	for _, x := range values {
		out = append(out, math.Float64bits(x))
	}
	return out
}

// TestTimelines: what is read of targets' series is what was appended, where targets have equal
// times by chance until they do not, some series miss scrapes or begin late, and one of them gets
// samples at times of its own.
func TestTimelines(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 8))
		var c nodes
		const targets, each = 4, 6
		var all [targets * each]chain
		var ts [targets * each][]int64
		var vs [targets * each][]float64
		jitter, floor := []int{1, 3, 1000}[r.IntN(3)], int64(0)
		add := func(i int, at int64) {
			if n := len(ts[i]); n > 0 && ts[i][n-1] >= at {
				return
			}
			v := 0.0
			if n := len(vs[i]); n > 0 {
				v = vs[i][n-1]
			}
			v = shapes[i%len(shapes)](r, v)
			c.append(&all[i], at, v, floor)
			ts[i], vs[i] = append(ts[i], at), append(vs[i], v)
		}
		for round := range int64(150) {
			for target := range targets {
				at := 1 + 15_000*round + int64(r.IntN(jitter))
				for k := range each {
					if r.IntN(30) > 0 && (k > 0 || round > 50) {
						add(target*each+k, at)
					}
				}
				if r.IntN(4) == 0 {
					add(target*each+1, at+1+r.Int64N(100))
				}
				if round > 100 && target == 0 { // it is down
					break
				}
			}
			if round%10 == 9 {
				floor = 15_000 * (round - 20)
				for i := range all {
					c.forget(&all[i], floor)
				}
				for i := range all {
					checkReads(t, r, &c, &all[i], ts[i], vs[i], floor, 3)
				}
			}
		}
		require.Less(t, c.lines.times, int64(60*len(all)))
		for i := range all {
			c.forget(&all[i], math.MaxInt64)
		}
		require.Zero(t, c.held)
		require.Zero(t, c.lines.times)
	}
}

// TestTargetsShareTimes: targets whose times were equal have a timeline each when they are not any
// more, and so do series that miss every second scrape.
func TestTargetsShareTimes(t *testing.T) {
	var c nodes
	const targets, each = 3, 50
	var all [targets * each]chain
	for round := range int64(40) {
		for i := range all {
			at := 15_000 * round
			switch target := int64(i / each); {
			case target == 1 && round > 5 && round%3 > 0:
				at++
			case target == 2 && round%2 > 0:
				continue
			}
			c.append(&all[i], at, float64(i), math.MinInt64)
		}
	}
	lines := map[uint32]int{}
	for i := range all {
		lines[all[i].line]++
	}
	require.Equal(t, targets, len(lines), lines)
	require.Equal(t, targets, len(c.lines.all)-len(c.lines.free))
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
	got, _, _ := c.read(&s, 99_950*15_000, math.MaxInt64, nil, nil)
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
		got, _, v := c.read(&s, mint, maxt, nil, nil)
		require.Len(t, got, 10)
		require.Equal(t, k*15_000, got[0])
		require.Equal(t, k*15_000+135_000, got[9])
		require.Len(t, v, 10)
		require.Equal(t, 10, c.count(&s, mint, maxt))
	}
}

// TestSizes: what usual series take.
func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		value func(i int) float64
		nodes int64
	}{
		"constant":   {func(int) float64 { return 3.25 }, 0},
		"counter":    {func(i int) float64 { return float64(1e9 + i*12_345) }, 3},
		"hundredths": {func(i int) float64 { return float64(123_456+i*731) / 100 }, 3},
		"billionths": {func(i int) float64 { return float64(123_456+i*i*i%9_973) / 1e9 }, 3},
		"random":     {func(i int) float64 { return 1 / float64(i+3) }, 8},
	} {
		var c nodes
		var s chain
		for i := range 48 { // twelve minutes
			c.append(&s, int64(1_700_000_000_000+i*15_000+i*i%20), tc.value(i), math.MinInt64)
		}
		require.LessOrEqual(t, c.held, tc.nodes, name)
	}
	require.EqualValues(t, 64, reflect.TypeFor[node]().Size())
	require.EqualValues(t, chainBytes, reflect.TypeFor[chain]().Size())
	require.EqualValues(t, lineBytes, reflect.TypeFor[timeline]().Size())
}
