package lookup

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var s numbers
		known, bytes := map[uint32]bool{}, int64(0)
		first := rng.Uint32N(1 << 20)
		for range 300 {
			i := first + rng.Uint32N(20_000)
			require.Equal(t, known[i], s.has(i))
			if !known[i] {
				bytes += s.add(i)
				known[i] = true
			}
			require.True(t, s.has(i))
		}
		require.Equal(t, len(known), s.n)
		require.Equal(t, 8*int64(cap(s.words)), bytes)
		for i := range uint32(25_000) {
			require.Equal(t, known[first+i], s.has(first+i))
		}
	}
}

// TestNumbersAreBounded: a set forgets what lies far from the number that is added.
func TestNumbersAreBounded(t *testing.T) {
	for _, far := range []uint32{0, 1<<32 - 1, 500_000, 1_000_000 + 64*maxWords} {
		var s numbers
		s.add(1_000_000)
		s.add(1_000_001)
		s.add(far)
		require.True(t, s.has(far))
		require.False(t, s.has(1_000_000))
		require.Equal(t, 1, s.n)
		require.LessOrEqual(t, len(s.words), maxWords)
	}
	var s numbers
	s.add(64 * maxWords)
	s.add(64) // the first that fits
	require.True(t, s.has(64*maxWords))
	require.Len(t, s.words, maxWords)
	s.add(0)
	require.Equal(t, 1, s.n)
}
