package fetch

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func pieceAt(off, n int64) *piece { return &piece{span: Span{Offset: off, Length: n}} }

func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		name      string
		spans     [][2]int64
		gap, size int64
		want      [][2]int64
	}{
		{"none", nil, 10, 100, nil},
		{"neighbours", [][2]int64{{0, 5}, {5, 5}}, 0, 100, [][2]int64{{0, 10}}},
		{"a gap that pays", [][2]int64{{0, 5}, {8, 5}}, 3, 100, [][2]int64{{0, 13}}},
		{"a gap that does not", [][2]int64{{0, 5}, {9, 5}}, 3, 100, [][2]int64{{0, 5}, {9, 5}}},
		{"gaps add up", [][2]int64{{0, 5}, {7, 5}, {14, 5}}, 3, 100, [][2]int64{{0, 12}, {14, 5}}},
		{"in any order", [][2]int64{{8, 5}, {0, 5}}, 3, 100, [][2]int64{{0, 13}}},
		{"a large piece in several", [][2]int64{{10, 25}}, 3, 10, [][2]int64{{10, 10}, {20, 10}, {30, 5}}},
		{"what is unwanted does not count as size", [][2]int64{{0, 5}, {8, 5}}, 3, 10, [][2]int64{{0, 13}}},
		{"an empty piece", [][2]int64{{3, 0}}, 3, 10, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pieces []*piece
			for _, s := range tc.spans {
				pieces = append(pieces, pieceAt(s[0], s[1]))
			}
			var got [][2]int64
			for _, r := range requests(pieces, tc.gap, tc.size) {
				got = append(got, [2]int64{r.Offset, r.Length})
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// TestRequestsHaveEveryByteOnce: whatever the pieces are, every wanted byte is in exactly one
// request, no request exceeds its bounds, and no two neighbours could share one.
func TestRequestsHaveEveryByteOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 2000 {
		gap, size := rng.Int64N(20), 1+rng.Int64N(50)
		var pieces []*piece
		at := int64(0)
		for range rng.IntN(12) {
			at += rng.Int64N(25)
			p := pieceAt(at, rng.Int64N(40))
			at += p.span.Length
			pieces = append(pieces, p)
		}
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		got := map[int64]int{}
		rs := requests(pieces, gap, size)
		for i, r := range rs {
			wanted := int64(0)
			for _, p := range r.parts {
				require.GreaterOrEqual(t, p.from, r.Offset)
				require.LessOrEqual(t, p.from+p.n, r.end())
				wanted += p.n
				for b := p.from; b < p.from+p.n; b++ {
					got[b]++
				}
			}
			require.LessOrEqual(t, wanted, size)
			require.LessOrEqual(t, r.Length-wanted, gap)
			require.Equal(t, r.Offset, r.parts[0].from)
			if i > 0 {
				prev := rs[i-1]
				var had int64
				for _, p := range prev.parts {
					had += p.n
				}
				require.True(t, had == size || r.Offset-prev.end()+prev.Length-had > gap, "%v and %v are two", prev.Span, r.Span)
			}
		}
		n := int64(0)
		for _, p := range pieces {
			n += p.span.Length
			for b := p.span.Offset; b < p.end(); b++ {
				require.Equal(t, 1, got[b])
			}
		}
		require.Len(t, got, int(n))
	}
}

// TestUncovered compares with a map of bytes.
func TestUncovered(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for range 2000 {
		var have, want [100]bool
		var files []*file
		for range rng.IntN(3) {
			f := &file{}
			for at := int64(rng.IntN(20)); at < 80; at += int64(rng.IntN(20)) {
				p := pieceAt(at, int64(rng.IntN(10)))
				f.pieces = append(f.pieces, p)
				for ; at < p.end(); at++ {
					have[at] = true
				}
			}
			files = append(files, f)
		}
		var spans []Span
		for range rng.IntN(4) {
			s := Span{Offset: int64(rng.IntN(60)), Length: int64(rng.IntN(40))}
			spans = append(spans, s)
			for b := s.Offset; b < s.Offset+s.Length; b++ {
				want[b] = true
			}
		}
		last := int64(-1)
		for _, s := range uncovered(spans, files) {
			require.Positive(t, s.Length)
			require.Greater(t, s.Offset, last, "in order, and apart")
			last = s.Offset + s.Length
			for b := s.Offset; b < last; b++ {
				require.True(t, want[b] && !have[b], "byte %d", b)
				want[b] = false
			}
		}
		for b := range want {
			require.False(t, want[b] && !have[b], "byte %d is left out", b)
		}
	}
}
