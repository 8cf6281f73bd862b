package api

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
)

// TestParts: the parts of a range are shorter than it, and together they are the range. Otherwise
// an export would divide a range without end.
func TestParts(t *testing.T) {
	const w = key.WindowMillis
	check := func(mint, maxt, n int64) {
		next := mint
		for from, end := range parts(mint, maxt, n) {
			require.Equal(t, next, from)
			require.LessOrEqual(t, from, end)
			require.Less(t, end-from, maxt-mint, "%d to %d, %d samples", mint, maxt, n)
			next = end + 1
		}
		require.Equal(t, maxt+1, next)
	}
	check(1, 2*w-1, pieceSamples+1)
	check(5, 6, 2*pieceSamples)
	check(key.MinTime, key.MaxTime, 2*pieceSamples)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		mint := rng.Int64N(3*w) - w
		maxt := mint + 1 + []int64{rng.Int64N(5), rng.Int64N(4) * w / 2, 2*w - 4 + rng.Int64N(5), rng.Int64N(100 * w)}[rng.IntN(4)]
		check(mint, maxt, pieceSamples+1+rng.Int64N(2)*rng.Int64N(100*pieceSamples))
	}
}
