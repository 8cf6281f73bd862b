package block

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIDSet holds the set against a map: an identifier is the hash, or the next one that is free.
func TestIDSet(t *testing.T) {
	for _, mask := range []uint64{math.MaxUint64, 1<<20 - 1, math.MaxUint64 &^ 0xffff, 0} {
		s, taken := newIDSet(mask, int(mask&0xff)), map[uint64]bool{}
		rng := rand.New(rand.NewPCG(mask, 1))
		for i := range 5000 {
			hash := rng.Uint64()
			if i%100 == 0 {
				hash = math.MaxUint64 - uint64(i%300) // beside the end of the range
			}
			want := hash & mask
			for taken[want] {
				want++
			}
			taken[want] = true
			require.Equal(t, want, s.assign(hash))
		}
	}
}
