package samples

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBetween finds the same positions as a scan of all times, evenly apart or not.
func TestBetween(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		ts, at := []int64{}, rng.Int64N(2000)-1000
		step := 1 + rng.Int64N(12)
		gap := max(0, rng.Int64N(800)-400) // the largest jump beside the step; 0: they are evenly apart
		for range rng.IntN(200) {
			ts, at = append(ts, at), at+step
			if gap > 0 && rng.IntN(10) == 0 {
				at += rng.Int64N(gap)
			}
		}
		mint := rng.Int64N(4000) - 1500
		for _, maxt := range []int64{mint, mint + rng.Int64N(2000), math.MaxInt64} {
			lo, hi := between(ts, mint, maxt)
			want := slices.DeleteFunc(slices.Clone(ts), func(x int64) bool { return x < mint || x > maxt })
			require.Equal(t, want, ts[lo:hi], "%v in [%d, %d]", ts, mint, maxt)
		}
	}
}
