package replica_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/replica"
)

// target is a counter that two Prometheus scrape.
type target struct {
	resets []int64   // ms
	steps  []float64 // by second: what it has counted since the last reset
}

func newTarget(r *rand.Rand, end int64) *target {
	x := &target{}
	v := 0.0
	for t := int64(0); t <= end; t += second {
		if r.IntN(2000) == 0 {
			v = 0
			x.resets = append(x.resets, t)
		}
		x.steps = append(x.steps, v)
		v += float64(r.IntN(4))
	}
	return x
}

func (x *target) at(t int64) float64 { return x.steps[min(int(t/second), len(x.steps)-1)] }

// resetIn reports whether a reset lies in (from, to].
func (x *target) resetIn(from, to int64) bool {
	for _, t := range x.resets {
		if t/second > from/second && t/second <= to/second {
			return true
		}
	}
	return false
}

// scraper is a Prometheus that was killed and started again several times.
type scraper struct {
	replica.Series
	downs [][2]int64 // ms: nothing was scraped
}

// upThrough reports whether it scraped everything in [from, to].
func (s *scraper) upThrough(from, to int64) bool {
	for _, d := range s.downs {
		if d[0] <= to && d[1] >= from {
			return false
		}
	}
	return true
}

// scrape reads the target at each interval. A scrape takes up to slow ms, and the value is of any
// moment of it; its time is that of its begin, with some jitter.
func scrape(r *rand.Rand, x *target, interval, slow, end int64, kills int) *scraper {
	s := &scraper{}
	for range kills {
		from := r.Int64N(end)
		s.downs = append(s.downs, [2]int64{from, from + second + r.Int64N(40*60*second)})
	}
	for t := r.Int64N(interval); t < end; t += interval {
		begin := t + r.Int64N(interval/100+1)
		if s.upThrough(t, t) {
			s.T, s.V = append(s.T, begin), append(s.V, x.at(begin+r.Int64N(slow+1)))
		}
	}
	return s
}

// TestKills: whichever replica dies whenever, as long as one lives the samples that count are no
// further apart than its scrapes, none is doubled, and the counter falls only where it was reset.
func TestKills(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 63))
	const end = 3 * 3600 * second
	switches := 0
	for i := range 200 {
		interval := []int64{10, 15, 30, 60, 120}[i%5] * second
		slow := []int64{0, 100, interval / 4}[r.IntN(3)]
		x := newTarget(r, end)
		all := []*scraper{scrape(r, x, interval, slow, end, r.IntN(4)), scrape(r, x, interval, slow, end, r.IntN(4))}
		of := []replica.Series{all[0].Series, all[1].Series}
		got := choose(of)
		longest := interval + interval/100
		for k := 1; k < len(got); k++ {
			a, b := got[k-1], got[k]
			gap := b.t - a.t
			// Where values cross, the sample next to the other replica's is left out.
			most := longest + slow
			if slow > 0 {
				most = longest + interval/2
			}
			for _, s := range all {
				if s.upThrough(a.t-interval, b.t+interval) {
					require.LessOrEqual(t, gap, most, "round %d, from %v to %v", i, a, b)
				}
			}
			if b.v < a.v {
				require.True(t, x.resetIn(a.t, b.t+slow), "round %d: the counter falls from %v to %v", i, a, b)
			}
			if a.of != b.of {
				switches++
			}
			if k > 1 && a.of == got[k-2].of && a.of == b.of {
				require.Greater(t, gap, interval*9/10)
			}
		}
		if len(of[1].T) > 0 && len(of[0].T) > 0 {
			last := max(of[0].T[len(of[0].T)-1], of[1].T[len(of[1].T)-1])
			delay := max(30*second, interval*7/4) + longest
			require.GreaterOrEqual(t, got[len(got)-1].t, last-delay, "round %d: the end is late by the failover timeout at most", i)
		}
		// A window has as many samples as it has scrapes, and one more for each switch.
		for from := int64(0); from < end; from += 5 * 60 * second {
			n, changes, last := int64(0), int64(0), -1
			for _, x := range got {
				if x.t >= from && x.t < from+5*60*second {
					n++
					if last >= 0 && x.of != last {
						changes++
					}
					last = x.of
				}
			}
			require.LessOrEqual(t, n, 5*60*second/interval+1+changes, "round %d", i)
		}
	}
	require.Greater(t, switches, 500)
}
