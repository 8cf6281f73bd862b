package parquetfile

import (
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/stretchr/testify/require"
)

// TestHybridDecodes decodes random runs of every width with another decoder.
func TestHybridDecodes(t *testing.T) {
	lengths := []int{1, 1, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 1000}
	for width := 1; width <= 32; width++ {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, uint64(width)))
			// few values, so that adjacent runs are often equal
			values := make([]uint32, 1+rng.IntN(5))
			for i := range values {
				values[i] = uint32(rng.Uint64() & (1<<width - 1))
			}
			values[0] = 0
			var want []int32
			h := newHybrid([]byte("before"), width, nil)
			if seed%2 == 1 {
				h.least = shortRun(width)
			}
			for range rng.IntN(60) {
				v, n := values[rng.IntN(len(values))], lengths[rng.IntN(len(lengths))]
				h.run(v, n)
				for range n {
					want = append(want, int32(v))
				}
			}
			out := h.finish()
			require.Equal(t, "before", string(out[:6]))
			got, err := (&rle.Encoding{BitWidth: width}).DecodeInt32(nil, out[6:])
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(got), len(want))
			require.Equal(t, want, append([]int32(nil), got[:len(want)]...), "width %d, seed %d", width, seed)
			require.Less(t, len(got)-len(want), 8)
			for _, pad := range got[len(want):] {
				require.Zero(t, pad)
			}
		}
	}
}

// TestHybridGolden pins the bytes of the example in hybrid's comment.
func TestHybridGolden(t *testing.T) {
	for _, tc := range []struct {
		name  string
		width int
		runs  []run
		want  []byte
	}{
		{"nothing", 3, nil, nil},
		{"no run", 3, []run{{5, 0}}, nil},
		{"run", 3, []run{{5, 8}}, []byte{8 << 1, 5}},
		{"merged run", 3, []run{{5, 4}, {5, 4}}, []byte{8 << 1, 5}},
		{"two-byte value", 9, []run{{257, 300}}, []byte{0xd8, 0x04, 1, 1}},
		{"packed", 3, []run{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}, []byte{1<<1 | 1, 0x88, 0xc6, 0xfa}},
		{"short run packed", 1, []run{{1, 7}}, []byte{1<<1 | 1, 0x7f}},
		{"run fills the pack first", 1, []run{{0, 1}, {1, 15}}, []byte{1<<1 | 1, 0xfe, 8 << 1, 1}},
		{"rest of a run too short", 1, []run{{0, 1}, {1, 14}}, []byte{2<<1 | 1, 0xfe, 0x7f}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHybrid(nil, tc.width, nil)
			for _, r := range tc.runs {
				h.run(r.idx, int(r.n))
			}
			require.Equal(t, tc.want, h.finish())
		})
	}
}

// TestHybridShortRuns pins that short runs are stored as such where that takes fewer bytes.
func TestHybridShortRuns(t *testing.T) {
	for width, least := range map[int]int{1: 8, 2: 8, 3: 6, 8: 3, 9: 3, 15: 2, 17: 2, 32: 2} {
		require.Equal(t, least, shortRun(width), "width %d", width)
		for n := least; n < 20 && least < usualRun; n++ {
			packed, run := newHybrid(nil, width, nil), newHybrid(nil, width, nil)
			packed.least, run.least = 20, least
			for v := range uint32(64) {
				packed.run(v&(1<<min(width, 6)-1), n)
				run.run(v&(1<<min(width, 6)-1), n)
			}
			require.LessOrEqual(t, len(run.finish()), len(packed.finish()), "width %d, runs of %d", width, n)
		}
	}
}
