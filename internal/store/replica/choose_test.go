package replica_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/replica"
)

const second = int64(1000)

var (
	rule  = replica.Rule{Replica: "__replica__", Cluster: "cluster", Failover: 30 * second}
	stale = math.Float64frombits(value.StaleNaN)
)

// chosen is a sample that counts.
type chosen struct {
	t  int64
	of int
	v  float64
}

func choose(of []replica.Series) []chosen { return chooseIn(of, math.MinInt64, math.MaxInt64) }

func chooseIn(of []replica.Series, mint, maxt int64) (out []chosen) {
	for _, s := range rule.Choose(nil, of, mint, maxt) {
		for k := s.From; k < s.To; k++ {
			out = append(out, chosen{of[s.Of].T[k], s.Of, of[s.Of].V[k]})
		}
	}
	return out
}

// every returns samples at each step of [from, to], which count up.
func every(from, to, step int64) (s replica.Series) {
	for t := from; t <= to; t += step {
		s.T, s.V = append(s.T, t*second), append(s.V, float64(t))
	}
	return s
}

func joined(all ...replica.Series) (out replica.Series) {
	for _, s := range all {
		out.T, out.V = append(out.T, s.T...), append(out.V, s.V...)
	}
	return out
}

func at(t int64, v float64) replica.Series {
	return replica.Series{T: []int64{t * second}, V: []float64{v}}
}

// TestExamples: the cases of the documentation. Samples are named by their seconds.
func TestExamples(t *testing.T) {
	for name, c := range map[string]struct {
		of   []replica.Series
		want [][]int64 // by replica
	}{
		"both live":                            {[]replica.Series{every(0, 120, 15), every(7, 127, 15)}, [][]int64{{0, 15, 30, 45, 60, 75, 90, 105, 120}, nil}},
		"the first dies":                       {[]replica.Series{every(0, 30, 15), every(7, 97, 15)}, [][]int64{{0, 15, 30}, {37, 52, 67, 82, 97}}},
		"the first may be late":                {[]replica.Series{every(0, 30, 15), every(7, 52, 15)}, [][]int64{{0, 15, 30}, nil}},
		"the second dies":                      {[]replica.Series{every(0, 60, 15), every(7, 22, 15)}, [][]int64{{0, 15, 30, 45, 60}, nil}},
		"the first begins later":               {[]replica.Series{every(60, 90, 15), every(7, 97, 15)}, [][]int64{{60, 75, 90}, {7, 22, 37, 52}}},
		"one scrape is missing":                {[]replica.Series{joined(every(0, 30, 15), every(60, 90, 15)), every(7, 97, 15)}, [][]int64{{0, 15, 30, 60, 75, 90}, {37, 52}}},
		"one scrape failed":                    {[]replica.Series{joined(every(0, 30, 15), at(45, stale), every(60, 90, 15)), every(7, 97, 15)}, [][]int64{{0, 15, 30, 60, 75, 90}, {37, 52}}},
		"one ends with a marker":               {[]replica.Series{joined(every(0, 30, 15), at(45, stale)), every(7, 52, 15)}, [][]int64{{0, 15, 30}, {37, 52}}},
		"both end with a marker":               {[]replica.Series{joined(every(0, 30, 15), at(45, stale)), joined(every(7, 37, 15), at(52, stale))}, [][]int64{{0, 15, 30, 45}, {37, 52}}},
		"both end at once":                     {[]replica.Series{joined(every(0, 30, 15), at(45, stale)), joined(every(7, 37, 15), at(45, stale))}, [][]int64{{0, 15, 30, 45}, {37}}},
		"equal times":                          {[]replica.Series{every(0, 60, 15), every(0, 120, 15)}, [][]int64{{0, 15, 30, 45, 60}, {75, 90, 105, 120}}},
		"two minutes between scrapes":          {[]replica.Series{every(0, 960, 120), every(50, 1010, 120)}, [][]int64{{0, 120, 240, 360, 480, 600, 720, 840, 960}, {50}}},
		"the third fills":                      {[]replica.Series{every(0, 30, 15), every(7, 37, 15), every(3, 153, 15)}, [][]int64{{0, 15, 30}, {37}, {48, 63, 78, 93, 108, 123, 138, 153}}},
		"the value of a scrape is older":       {[]replica.Series{joined(every(0, 15, 15), at(30, 31)), joined(every(1, 16, 15), at(31, 30.5), every(46, 106, 15))}, [][]int64{{0, 15, 30}, {46, 61, 76, 91, 106}}},
		"the target was reset":                 {[]replica.Series{joined(every(0, 15, 15), at(30, 31)), joined(every(1, 16, 15), at(31, 0.5), every(46, 106, 15))}, [][]int64{{0, 15, 30}, {31, 46, 61, 76, 91, 106}}},
		"the value of the last fill is newer":  {[]replica.Series{joined(every(0, 30, 15), at(90, 89), every(105, 120, 15)), joined(every(1, 76, 15), at(89, 89.5), every(104, 119, 15))}, [][]int64{{0, 15, 30, 90, 105, 120}, {31, 46, 61, 76}}},
		"no samples of the first":              {[]replica.Series{{}, every(0, 30, 15)}, [][]int64{nil, {0, 15, 30}}},
		"only a marker of the first":           {[]replica.Series{at(20, stale), every(0, 30, 15)}, [][]int64{nil, {0, 15, 30}}},
		"a marker outlives both":               {[]replica.Series{every(0, 30, 15), joined(every(7, 37, 15), at(300, stale))}, [][]int64{{0, 15, 30}, {37, 300}}},
		"longer than five minutes of interval": {[]replica.Series{every(0, 1200, 600), every(300, 900, 600)}, [][]int64{{0, 600, 1200}, {300, 900}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := make([][]int64, len(c.of))
			for _, x := range choose(c.of) {
				got[x.of] = append(got[x.of], x.t/second)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// irregular returns the samples of a replica with any defect: late, missing, irregular and equal
// times, stale markers, long silence.
func irregular(r *rand.Rand, end int64) (s replica.Series) {
	step := []int64{10, 15, 30, 60, 120, 280}[r.IntN(6)] * second
	v := 0.0
	for t := r.Int64N(2 * step); t < end; {
		switch r.IntN(30) {
		case 0:
			t += r.Int64N(20 * 60 * second)
		case 1:
			t += step * int64(1+r.IntN(4))
		case 2:
			step = []int64{10, 15, 30, 60, 120, 280}[r.IntN(6)] * second
		case 3:
			v = 0
		}
		x := v
		if r.IntN(15) == 0 {
			x = stale
		}
		s.T, s.V = append(s.T, t), append(s.V, x)
		v += float64(r.IntN(5)) - 0.5
		t += step
		if r.IntN(3) == 0 {
			t += r.Int64N(step) - step/2
		}
	}
	return s
}

func irregulars(r *rand.Rand) []replica.Series {
	of := make([]replica.Series, 1+r.IntN(4))
	for i := range of {
		of[i] = irregular(r, 3*3600*second)
		if i > 0 && r.IntN(5) == 0 {
			of[i].T = slices.Clone(of[0].T) // equal times
			of[i].V = slices.Clone(of[0].V)
		}
	}
	return of
}

// TestRangeDoesNotMatter: what counts in a range follows from the samples within Around of it.
func TestRangeDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	within := func(all []chosen, mint, maxt int64) []chosen {
		return slices.DeleteFunc(slices.Clone(all), func(x chosen) bool { return x.t < mint || x.t > maxt })
	}
	for range 300 {
		of := irregulars(r)
		whole := choose(of)
		for range 10 {
			mint := r.Int64N(3 * 3600 * second)
			maxt := mint + r.Int64N(1800*second)
			part := make([]replica.Series, len(of))
			for i, s := range of {
				lo, _ := slices.BinarySearch(s.T, mint-replica.Around)
				hi, _ := slices.BinarySearch(s.T, maxt+replica.Around+1)
				part[i] = replica.Series{T: s.T[lo:hi], V: s.V[lo:hi]}
			}
			got, want := within(chooseIn(part, mint, maxt), mint, maxt), within(whole, mint, maxt)
			require.Len(t, got, len(want))
			for k := range got {
				require.Equal(t, want[k].t, got[k].t)
				require.Equal(t, want[k].of, got[k].of)
			}
		}
	}
}

// TestChosenOnce: times ascend without repetition, and with one replica alone everything counts.
func TestChosenOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		of := irregulars(r)
		got := choose(of)
		require.True(t, slices.IsSortedFunc(got, func(a, b chosen) int { return cmp.Compare(a.t, b.t) }))
		for k := 1; k < len(got); k++ {
			require.Less(t, got[k-1].t, got[k].t)
		}
		require.Len(t, choose(of[:1]), len(of[0].T))
	}
}
