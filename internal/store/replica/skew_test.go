package replica_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/replica"
)

// increase is how much a counter grows over samples, as PromQL counts it: after a fall it began at 0.
func increase(in []chosen) (sum float64) {
	for k := 1; k < len(in); k++ {
		if in[k].v < in[k-1].v {
			sum += in[k].v
		} else {
			sum += in[k].v - in[k-1].v
		}
	}
	return sum
}

// flaps reports whether the target was reset more than once around [from, to].
func (x *target) flaps(from, to int64) bool {
	n := 0
	for _, t := range x.resets {
		if t > from-2*replica.Reach && t < to+2*replica.Reach {
			n++
		}
	}
	return n > 1
}

// TestSkew: the clocks of replicas differ, and either of them dies at any time. No window shows a
// larger increase than the counter had from Skew before it until Skew after it, in a counter that is
// never reset; and one that is reset falls only around its resets, unless it is reset repeatedly.
func TestSkew(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 38))
	const end = 2 * 3600 * second
	switches, skipped := 0, 0
	for i := range 300 {
		interval := []int64{5, 15, 30, 60}[i%4] * second
		skew := r.Int64N(2*replica.Skew-1000) - replica.Skew + 500
		x := newTarget(r, end)
		if i%2 == 0 {
			x = steady(r, end)
		}
		all := []*scraper{scrape(r, x, interval, 100, end, r.IntN(6)), scrape(r, x, interval, 100, end, r.IntN(6))}
		ahead := all[i/4%2]
		for k := range ahead.T {
			ahead.T[k] += skew
		}
		got := choose([]replica.Series{all[0].Series, all[1].Series})
		for k := 1; k < len(got); k++ {
			a, b := got[k-1], got[k]
			if a.of != b.of {
				switches++
			}
			if b.v < a.v && !x.resetIn(a.t-replica.Skew-interval, b.t+replica.Skew+interval) && !x.flaps(a.t, b.t) {
				require.Fail(t, "the counter falls", "round %d, skew %d, from %v to %v", i, skew, a, b)
			}
			for _, s := range all {
				if around := 2*interval + 2*replica.Skew; s.upThrough(a.t-around, b.t+around) {
					require.LessOrEqual(t, b.t-a.t, 2*interval+replica.Skew, "round %d, skew %d, from %v to %v", i, skew, a, b)
				}
			}
		}
		if i%2 != 0 {
			continue
		}
		for len(got) > 1 {
			n := min(len(got), 20)
			from, to := max(0, got[0].t-replica.Skew-interval), got[n-1].t+replica.Skew+interval
			require.LessOrEqual(t, increase(got[:n]), x.at(to)-x.at(from), "round %d, skew %d, from %v to %v", i, skew, got[0], got[n-1])
			got = got[n-1:]
			skipped++
		}
	}
	require.Greater(t, switches, 500)
	require.Greater(t, skipped, 500)
}

// steady is a target that is never reset, which counts now and then or all the time.
func steady(r *rand.Rand, end int64) *target {
	x, often := &target{}, 1+r.IntN(40)
	v := 1e6 * r.Float64()
	for range end/second + 1 {
		x.steps = append(x.steps, v)
		if r.IntN(often) == 0 {
			v += float64(r.IntN(9))
		}
	}
	return x
}

// TestGaugesKeepTheirSamples: values that rise and fall, in replicas with equal clocks, lose at most
// the sample next to a change of the replica.
func TestGaugesKeepTheirSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 39))
	lost, switches := 0, 0
	for range 300 {
		const end = 3600 * second
		x := &target{}
		v := 50.0
		for range end/second + 1 {
			v += r.NormFloat64()
			x.steps = append(x.steps, v)
		}
		of := []replica.Series{scrape(r, x, 15*second, 0, end, 3).Series, scrape(r, x, 15*second, 0, end, 3).Series}
		got := choose(of)
		// A counter with the same times loses nothing.
		for i := range of {
			for k := range of[i].V {
				of[i].V[k] = float64(of[i].T[k])
			}
		}
		all := choose(of)
		lost += len(all) - len(got)
		for k := 1; k < len(all); k++ {
			if all[k].of != all[k-1].of {
				switches++
			}
		}
	}
	require.Greater(t, switches, 300)
	require.Less(t, lost, switches/50)
}
