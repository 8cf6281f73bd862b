package delta

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/stretchr/testify/require"
)

// TestBytesDecodes decodes values of all ranges and counts with another decoder.
func TestBytesDecodes(t *testing.T) {
	for _, n := range []int{1, 2, 31, 32, 33, 34, 127, 128, 129, 130, 161, 1000, 2048, 2049, 5000} {
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			vals := make([]int64, n)
			for i := range vals {
				switch {
				case seed == 0: // a constant
					vals[i] = -7
				case seed == 1: // deltas that wrap around
					vals[i] = []int64{math.MinInt64, math.MaxInt64, 0, -1}[rng.IntN(4)]
				default:
					vals[i] = rng.Int64()>>rng.IntN(64) - rng.Int64()>>(2*seed%64)
				}
			}
			b := AppendBytes([]byte("before"), vals)
			require.Equal(t, "before", string(b[:6]))
			got, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, b[6:])
			require.NoError(t, err)
			require.Equal(t, vals, got)

			var r Reader
			words := make([]uint64, n)
			require.NoError(t, r.Reset(b[6:], n))
			require.NoError(t, r.Read(words))
			for i, v := range words {
				require.Equal(t, vals[i], int64(v))
			}
		}
	}
}

// TestBytesGolden pins blocks whose minimum is the least delta of all blocks.
func TestBytesGolden(t *testing.T) {
	require.Equal(t, append([]byte{0x80, 1, 4, 3, 20, 6, 8, 0, 0, 0, 0, 2}, make([]byte, 30)...), AppendBytes(nil, []int64{10, 13, 18}))
	vals := []int64{0}
	for i := range 2 * byteBlock { // the deltas of the second block are 5 to 8, of the first 1 to 4
		vals = append(vals, vals[i]+int64(1+i%4+i/byteBlock*4))
	}
	b := AppendBytes(nil, vals)
	require.Equal(t, []byte{0x80, 0x10, 4, 0x81, 0x20, 0}, b[:6], "header")
	require.Equal(t, []byte{2, 8, 8, 8, 8, 0, 1, 2, 3}, b[6:15], "first block")
	require.Equal(t, []byte{2, 8, 8, 8, 8, 4, 5, 6, 7}, b[6+5+byteBlock:][:9], "second block")
	require.Len(t, b, 6+2*(5+byteBlock))
}

// TestBytesBlocks looks at the sizes of blocks: long ones that fit the number of values, and
// short ones where few deltas are wide.
func TestBytesBlocks(t *testing.T) {
	size := func(n int, wide ...int) uint64 {
		vals := make([]int64, n)
		for i := range n - 1 {
			vals[i+1] = vals[i] + int64(i%3)
			if slices.Contains(wide, i) {
				vals[i+1] += 1 << 40
			}
		}
		v, _ := binary.Uvarint(AppendBytes(nil, vals))
		return v
	}
	require.EqualValues(t, 2048, size(4097), "two blocks")
	require.EqualValues(t, 1920, size(481), "one miniblock")
	require.EqualValues(t, 1920, size(2881), "one block and two miniblocks of 480")
	require.EqualValues(t, 128, size(4097, 1000))
	require.EqualValues(t, 128, size(20))
}

func BenchmarkAppendBytes(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	vals := make([]int64, 8192)
	for i := range vals {
		vals[i] = int64(i*1000) + rng.Int64N(500)
	}
	var out []byte
	for b.Loop() {
		out = AppendBytes(out[:0], vals)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(vals)), "ns/value")
}
