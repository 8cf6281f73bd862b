package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/util/kahansum"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// TestOverlappingWindows: sums of windows that have most samples in common have the bits of sums
// that are added up sample by sample, whatever the values are, and wherever samples are missing.
func TestOverlappingWindows(t *testing.T) {
	const start, interval = 1_700_000_000_007, 15_000
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 8))
		kind := valueKinds[int(seed)%len(valueKinds)]
		var ts []int64
		var v []float64
		for i := range int64(300 + rng.IntN(1500)) {
			at := start + i*interval
			if seed%5 == 1 {
				at += rng.Int64N(3) * rng.Int64N(1000)
			}
			if seed%4 != 2 || rng.IntN(50) > 0 {
				ts, v = append(ts, at), append(v, kind.next(rng))
			}
		}
		step := []int64{15_000, 60_000, 60_000, 40_000, 7_000}[rng.IntN(5)]
		window := step * []int64{8, 9, 15, 60, 100}[rng.IntN(5)]
		spec := fmt.Sprintf("start=%d step=%d n=200 range=%d shift=0", start+rng.Int64N(2_000_000), step, window)
		for _, f := range overlaps {
			k := newKernel(t, "prom_"+f.name, spec+f.keys)
			got := make([]float64, 200)
			for _, facts := range []promsql.Facts{promsql.NoStale, promsql.NoStale | promsql.SameTimes} {
				_, err := k.Eval(ts, v, got, facts)
				require.NoError(t, err)
				f.check(t, fmt.Sprintf("%s of %s, seed %d", f.name, kind.name, seed), spec, ts, v, got)
			}
		}
	}
}

// valueKinds are kinds of values: those that are added without loss, with some, and with more than
// what they are; and those whose sums overflow, vanish, or are no numbers.
var valueKinds = []struct {
	name string
	next func(*rand.Rand) float64
}{
	{"hundredths", func(r *rand.Rand) float64 { return float64(r.IntN(100_000)) / 100 }},
	{"hundredths of both signs", func(r *rand.Rand) float64 { return float64(r.IntN(2001)-1000) / 100 }},
	{"halves", func(r *rand.Rand) float64 { return float64(r.IntN(9)-4) / 2 }},
	{"fractions", func(r *rand.Rand) float64 { return r.Float64() }},
	{"fractions of any magnitude", func(r *rand.Rand) float64 { return math.Ldexp(r.NormFloat64(), r.IntN(200)-100) }},
	{"odd multiples of a power of two", func(r *rand.Rand) float64 { return 1<<53 + 2*float64(r.IntN(3)) }},
	{"the smallest numbers", func(r *rand.Rand) float64 { return float64(r.IntN(100)) * math.SmallestNonzeroFloat64 }},
	{"the largest numbers", func(r *rand.Rand) float64 { return math.MaxFloat64 * r.NormFloat64() / 4 }},
	{"mostly zeros of both signs", func(r *rand.Rand) float64 {
		return []float64{0, 0, math.Copysign(0, -1), 0.1, -0.1}[min(r.IntN(60), 4)]
	}},
	{"steps", func(r *rand.Rand) float64 { return []float64{0.3, 0.3, 0.3, 7.7}[max(0, r.IntN(200)-196)] }},
	{"some infinities", func(r *rand.Rand) float64 { return []float64{math.Inf(1), math.Inf(-1), 1.1, 2.3}[min(r.IntN(300), 3)] }},
	{"some NaN", func(r *rand.Rand) float64 { return []float64{math.NaN(), 2.3}[min(r.IntN(300), 1)] }},
}

type overlap struct {
	name, keys string
	least      int // samples of a window that has a value
	of         func(at int64, ts []int64, v []float64) float64
}

var overlaps = []overlap{
	{"sum_over_time", "", 1, func(_ int64, _ []int64, v []float64) float64 {
		var sum, c float64
		for _, f := range v {
			sum, c = kahansum.Inc(f, sum, c)
		}
		if math.IsInf(sum, 0) {
			return sum
		}
		return sum + c
	}},
	{"avg_over_time", "", 1, func(_ int64, _ []int64, v []float64) float64 { return average(v) }},
	{"deriv", "", 2, func(_ int64, ts []int64, v []float64) float64 {
		slope, _ := regression(ts, v, ts[0])
		return slope
	}},
	{"predict_linear", " dur=3600", 2, func(at int64, ts []int64, v []float64) float64 {
		slope, intercept := regression(ts, v, at)
		return slope*3600 + intercept
	}},
}

func (o overlap) check(t *testing.T, what, spec string, ts []int64, v, got []float64) {
	t.Helper()
	var start, step, window int64
	var n int
	_, err := fmt.Sscanf(spec, "start=%d step=%d n=%d range=%d", &start, &step, &n, &window)
	require.NoError(t, err)
	lo, hi := 0, 0
	for k := range n {
		at := start + int64(k)*step
		for hi < len(ts) && ts[hi] <= at {
			hi++
		}
		for lo < hi && ts[lo] <= at-window {
			lo++
		}
		if hi-lo < o.least {
			require.Equal(t, math.Float64bits(stale), math.Float64bits(got[k]), "%s, step %d", what, k)
			continue
		}
		want := o.of(at, ts[lo:hi], v[lo:hi])
		if !math.IsNaN(want) || !math.IsNaN(got[k]) {
			require.Equal(t, math.Float64bits(want), math.Float64bits(got[k]), "%s, step %d: %v, want %v", what, k, got[k], want)
		}
	}
}

// average is upstream's funcAvgOverTime.
func average(v []float64) float64 {
	sum, count := v[0], 1.
	var mean, c float64
	incremental := false
	for i, f := range v[1:] {
		count = float64(i + 2)
		if !incremental {
			s, next := kahansum.Inc(f, sum, c)
			if !math.IsInf(s, 0) {
				sum, c = s, next
				continue
			}
			incremental = true
			mean = sum / (count - 1)
			c /= count - 1
		}
		q := (count - 1) / count
		mean, c = kahansum.Inc(f/count, q*mean, q*c)
	}
	if incremental {
		return mean + c
	}
	return sum/count + c/count
}

// regression is upstream's linearRegression.
func regression(ts []int64, v []float64, at int64) (slope, intercept float64) {
	var n, sumX, cX, sumY, cY, sumXY, cXY, sumX2, cX2 float64
	constant := true
	for i, f := range v {
		constant = constant && (i == 0 || f == v[0])
		n++
		x := float64(ts[i]-at) / 1e3
		sumX, cX = kahansum.Inc(x, sumX, cX)
		sumY, cY = kahansum.Inc(f, sumY, cY)
		sumXY, cXY = kahansum.Inc(x*f, sumXY, cXY)
		sumX2, cX2 = kahansum.Inc(x*x, sumX2, cX2)
	}
	if constant {
		if math.IsInf(v[0], 0) {
			return math.NaN(), math.NaN()
		}
		return 0, v[0]
	}
	sumX, sumY, sumXY, sumX2 = sumX+cX, sumY+cY, sumXY+cXY, sumX2+cX2
	cov, variance := sumXY-sumX*sumY/n, sumX2-sumX*sumX/n
	slope = cov / variance
	return slope, sumY/n - slope*sumX/n
}
