package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Largest values fill the lanes in which several are added up at once.
func TestSumPacked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for width := 1; width <= 64; width++ {
		b := make([]byte, 512*width/8+8)
		for _, largest := range []bool{false, true} {
			for i := range b {
				if b[i] = 0xff; !largest {
					b[i] = byte(rng.Uint32())
				}
			}
			for _, n := range []int{0, 1, 5, 31, 32, 33, 128, 511, 512} {
				for _, pos := range []int{0, 1, 17, 384} {
					n := min(n, 512-pos)
					var want uint64
					for i := range n {
						want += packed(b, width, pos+i)
					}
					for _, more := range []int{0, 3, 8} { // bytes that may be loaded
						end := 512 * width / 8
						require.Equal(t, want, sumPacked(b[:end:end+more], width, pos, n), "width %d, %d values from %d", width, n, pos)
					}
				}
			}
		}
	}
}
