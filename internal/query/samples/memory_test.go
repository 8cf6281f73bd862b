package samples

import (
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/lookup"
)

// TestArena: memory is handed out once until it is taken back, and then again, whatever the sizes.
func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a arena[int64]
	for range 3 {
		var all [][]int64
		for i := range 60 {
			n := rng.IntN(arenaChunk / 8)
			if i%20 == 7 {
				n = arenaChunk + rng.IntN(10)
			}
			b := a.take(n)
			require.Len(t, b, n)
			require.Equal(t, n, cap(b), "what follows is not its own")
			for k := range b {
				b[k] = int64(i)
			}
			all = append(all, b)
		}
		for i, b := range all {
			for _, v := range b {
				if v != int64(i) {
					require.Equal(t, int64(i), v)
				}
			}
		}
		a.reset()
	}
	require.Less(t, len(a.all), 10, "chunks are used again")
}

// TestJoin joins random fragments of series, whose times overlap or do not, and compares the result
// with merge. What it reports about the times must be true.
func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	times := make([][]int64, 4)
	for i := range times {
		at := int64(i/2) * 1000
		for range 1 + rng.IntN(50) {
			at += 1 + rng.Int64N(15)
			times[i] = append(times[i], at)
		}
	}
	var m Memory
	var last []int64
	same := 0
	for i := range 3000 {
		if i%100 == 0 {
			m.reset()
			last = nil
		}
		s := &collected{Series: lookup.Series{Labels: labels.FromStrings("a", "b")}}
		clean := true
		for rank := range 1 + rng.IntN(2) {
			b := &batch{t: times[rng.IntN(len(times))], clean: rng.IntN(4) > 0}
			for range b.t {
				b.v = append(b.v, rng.Float64())
			}
			f := fragment{b, 0, 0, uint32(len(b.t)), uint32(rank)}
			if i/8%2 == 0 { // as of scrapes
				b.base, b.near, b.t = times[0][0]-5, []uint16{3, uint16(rank*7 + i/32%2), 9}, nil
				b.v = []float64{rng.Float64(), rng.Float64(), rng.Float64()}
				f.off, f.n = uint32(1+i/3%2*(1-rank)), 1
			}
			clean = clean && b.clean
			s.floats = append(s.floats, f)
		}
		c := &collected{Series: s.Series, floats: append([]fragment(nil), s.floats...)}
		want := c.merge()
		got, facts := m.join(s)
		require.Equal(t, want.t, append([]int64(nil), got.t...))
		require.Equal(t, want.v, append([]float64(nil), got.v...))
		require.Equal(t, clean, facts&promsql.NoStale != 0)
		if facts&promsql.SameTimes != 0 {
			require.Equal(t, last, append([]int64(nil), got.t...))
			same++
		}
		last = append([]int64(nil), got.t...)
	}
	require.Greater(t, same, 250)
}
