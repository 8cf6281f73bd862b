package parquetfile

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// skewed returns n random bytes, of which some are much more frequent than others.
func skewed(rng *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(100 + rng.NormFloat64()*2)
	}
	return out
}

// TestLiteralsDecode decodes frames of bytes of all kinds and of lengths beside each limit of the
// format with the library's decoder.
func TestLiteralsDecode(t *testing.T) {
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer z.Close()
	var l Literals
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 11, 12, 31, 32, 255, 256, 257, 1023, 1024, 16383, 16384, 16385, 65791, 65792, literalBlock - 1, literalBlock, literalBlock + 1, 3*literalBlock + 7} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		for name, b := range map[string][]byte{
			"one byte": bytes.Repeat([]byte{7}, n), "two bytes": bytes.Repeat([]byte{7, 8}, n/2), "noise": noise, "skewed": skewed(rng, n),
			"half noise": append(skewed(rng, n-n/2), noise[:n/2]...),
		} {
			frame := l.Append([]byte("before"), b)
			require.Equal(t, "before", string(frame[:6]))
			got, err := z.DecodeAll(frame[6:], nil)
			require.NoError(t, err, "%d of %s", n, name)
			require.True(t, bytes.Equal(b, got), "%d of %s", n, name)
			var head zstd.Header
			require.NoError(t, head.Decode(frame[6:]))
			require.True(t, head.HasFCS)
			require.Equal(t, uint64(len(b)), head.FrameContentSize)
			require.InDelta(t, len(frame)-6, l.Size(b), 16+float64(n)/500, "%d of %s", n, name)
		}
	}
}

// TestLiteralsSize holds the size of random bytes against their entropy, and against the frame of
// the library's best encoder.
func TestLiteralsSize(t *testing.T) {
	b := skewed(rand.New(rand.NewPCG(2, 2)), 20_000)
	var count [256]int
	for _, x := range b {
		count[x]++
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			bits -= float64(n) * math.Log2(float64(n)/float64(len(b)))
		}
	}
	var l Literals
	got := len(l.Append(nil, b))
	require.Less(t, float64(got), bits/8*1.03)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	defer z.Close()
	require.Less(t, got, len(z.EncodeAll(b, nil)))
}

// TestLiteralsBytes pins a frame of few bytes, which are not compressed, and one of a single byte.
func TestLiteralsBytes(t *testing.T) {
	var l Literals
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	require.Equal(t, append(magic[:4:4], 0x20, 3, 0x19, 0, 0, 1, 2, 3), l.Append(nil, []byte{1, 2, 3}))
	require.Equal(t, append(magic[:4:4], 0x20, 40, 0x43, 1, 0, 9), l.Append(nil, bytes.Repeat([]byte{9}, 40)))
}
