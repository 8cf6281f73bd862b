package delta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/stretchr/testify/require"
)

// TestTightDecodes decodes values of all ranges and counts with another decoder. The last block
// is as narrow as its deltas are.
func TestTightDecodes(t *testing.T) {
	var dst []byte
	for _, n := range []int{0, 1, 2, 31, 32, 33, 34, 127, 128, 129, 130, 161, 256, 257, 1000, 2049, 16383, 16384, 16385} {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			vals := make([]int64, n)
			for i := range vals {
				switch {
				case seed == 0:
					vals[i] = -7
				case seed == 1:
					vals[i] = []int64{math.MinInt64, math.MaxInt64, 0, -1}[rng.IntN(4)]
				case seed == 2:
					vals[i] = 1e9 + 50*int64(i) + rng.Int64N(8)
				default:
					vals[i] = rng.Int64()>>rng.IntN(64) - rng.Int64()>>(2*seed%64)
				}
			}
			var err error
			dst, err = Tight(dst, vals)
			require.NoError(t, err)
			got, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, dst)
			require.NoError(t, err)
			require.Equal(t, len(vals), len(got))
			if n > 0 {
				require.Equal(t, vals, got)
			}
			if seed == 2 && n > 0 { // a block has 7 bytes before its miniblocks at most
				blocks, minis := (n-1+127)/128, (n-1+31)/32
				require.LessOrEqual(t, len(dst), 20+7*blocks+16*minis, "%d values", n)
			}
		}
	}
}

func BenchmarkTight(b *testing.B) {
	for _, n := range []int{100, 480, 2000, 16384} {
		b.Run(fmt.Sprintf("values=%d", n), func(b *testing.B) {
			vals := make([]int64, n)
			for i := range vals {
				vals[i] = 1e9 + 50*int64(i) + rand.Int64N(1500)
			}
			var dst []byte
			b.ReportAllocs()
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				dst, _ = Tight(dst, vals)
			}
		})
	}
}
