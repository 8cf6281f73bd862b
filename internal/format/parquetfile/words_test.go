package parquetfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// numbers returns n numbers, each one of the first kinds ones, in runs of the lengths 1 to longest.
func numbers(rng *rand.Rand, n, kinds, longest int) (out []byte) {
	for len(out) < 8*n {
		x := math.Float64bits(float64(rng.IntN(kinds)) / 8)
		for range min(1+rng.IntN(longest), n-len(out)/8) {
			out = binary.LittleEndian.AppendUint64(out, x)
		}
	}
	return out
}

// TestWordsDecode decodes frames of numbers of all kinds, after some other bytes, with the
// library's decoder: literals and repetitions of all lengths, and sequences of all numbers.
func TestWordsDecode(t *testing.T) {
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer z.Close()
	var w Words
	rng := rand.New(rand.NewPCG(1, 1))
	most := 0
	for _, n := range []int{0, 1, 2, 3, 5, 8, 31, 64, 100, 127, 128, 129, 1000, 4096, 8191, 8192, 8193, 16383, 16384, 16385, 40_000} {
		for _, kinds := range []int{1, 2, 3, 50, 3000, math.MaxInt32} {
			for _, longest := range []int{1, 2, 40, 3000, 30_000} {
				for _, before := range []int{0, 1, 7, 13} {
					b := append(bytes.Repeat([]byte{3}, before), numbers(rng, n, kinds, longest)...)
					frame := w.Append([]byte("before"), b)
					require.Equal(t, "before", string(frame[:6]))
					got, err := z.DecodeAll(frame[6:], nil)
					require.NoError(t, err, "%d of %d kinds, in runs of %d, after %d bytes", n, kinds, longest, before)
					require.True(t, bytes.Equal(b, got), "%d of %d kinds, in runs of %d, after %d bytes", n, kinds, longest, before)
					var head zstd.Header
					require.NoError(t, head.Decode(frame[6:]))
					require.True(t, head.HasFCS)
					require.Equal(t, uint64(len(b)), head.FrameContentSize)
					require.LessOrEqual(t, len(frame)-6, len(b)+frameHead+4+blockHead*(1+len(b)/literalBlock))
					most = max(most, len(w.sequences))
				}
			}
		}
	}
	require.Greater(t, most, 8000)
}

// TestWordsSize holds the size of samples of one time against that of the library's encoder.
func TestWordsSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var b []byte
	for range 4096 {
		v := float64(rng.IntN(1e6))
		switch rng.IntN(8) {
		case 0, 1:
			v /= 100
		case 2, 3, 4:
			v = float64(rng.IntN(2))
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	z, err := (*Encoders)(nil).Get(zstd.SpeedFastest)
	require.NoError(t, err)
	var w Words
	own, library := len(w.Append(nil, b)), len(z.EncodeAll(b, nil))
	require.Less(t, own, library*5/4)
	require.Less(t, own, len(b)*2/3)
}

// TestWordsBytes pins a frame of few numbers, and that a frame does not depend on those before it.
func TestWordsBytes(t *testing.T) {
	var w Words
	rng := rand.New(rand.NewPCG(3, 3))
	b := numbers(rng, 2000, 500, 5)
	first := bytes.Clone(w.Append(nil, b))
	w.Append(nil, numbers(rng, 3000, 200, 2))
	require.Equal(t, first, w.Append(nil, b))

	b = []byte{1}
	for _, v := range []float64{1, 1, 1, 1, 2, 1} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	require.Equal(t, "28b52ffd2031d500008801000000000000f03f0000000000000040020043117c603902", hex.EncodeToString(w.Append(nil, b)))
	require.Equal(t, []sequence{{9, 24, 8}, {8, 8, 32}}, w.sequences)
}
