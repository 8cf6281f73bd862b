package recent

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoomIsPoisoned: whoever uses samples after a reset finds none that could be some, and a room
// of a large read is not kept.
func TestRoomIsPoisoned(t *testing.T) {
	r := &Room{t: []int64{1, 2}, v: []float64{3, 4}}
	r.series = []Series{{T: r.t, V: r.v}}
	s := r.series
	ts, vs := s[0].T, s[0].V
	r.Reset()
	require.Equal(t, []int64{math.MinInt64, math.MinInt64}, ts)
	require.True(t, math.IsNaN(vs[0]) && math.IsNaN(vs[1]))
	require.Zero(t, s[0])
	require.Empty(t, r.t)
	require.NotZero(t, cap(r.t))

	r.v = make([]float64, keptSamples+1)
	r.Reset()
	require.Zero(t, cap(r.v)+cap(r.t))
}

// TestBetween returns the samples at both ends of a range, and between them.
func TestBetween(t *testing.T) {
	s := Series{T: []int64{10, 20, 30}, V: []float64{1, 2, 3}}
	for _, c := range []struct {
		mint, maxt int64
		want       []int64
	}{{0, 40, []int64{10, 20, 30}}, {10, 30, []int64{10, 20, 30}}, {11, 30, []int64{20, 30}}, {10, 29, []int64{10, 20}}, {12, 19, []int64{}}, {31, 50, []int64{}}, {0, 9, []int64{}}, {20, 20, []int64{20}}} {
		ts, vs := s.Between(c.mint, c.maxt)
		require.Equal(t, c.want, ts)
		require.Len(t, vs, len(ts))
	}
}
