package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	many := math.Inf(1) // bytes a second
	for _, test := range []struct {
		name                 string
		live, roots, scanned uint64
		rate                 float64
		want                 int
	}{
		{"nothing is live", 0, 0, 0, many, 100},
		{"little is live", 20 * mb, mb, mb, many, 100},
		{"all may hold pointers", 500 * mb, mb, 500 * mb, many, 100},
		{"more than is live may hold pointers", 500 * mb, mb, 700 * mb, many, 100},
		{"nothing holds pointers", 320 * mb, 0, 0, many, 10},
		{"some of it does", 320 * mb, 0, 64 * mb, many, 30},
		{"between two steps", 310 * mb, 0, 0, many, 15},
		{"very much is live", 1 << 40, 0, 0, many, 5},
		{"nothing is allocated", 320 * mb, 0, 320 * mb, 0, 10},
		{"little is allocated", 320 * mb, 0, 300 * mb, mb, 30},
		{"the same, and a collection reads twice as much", 640 * mb, 0, 600 * mb, mb, 25},
		{"much is allocated", 320 * mb, 0, 300 * mb, 100 * mb, 100},
	} {
		require.Equal(t, test.want, percent(test.live, test.roots, test.scanned, test.rate), test.name)
	}
}

// TestRate: the rate is not known at first, then the first one that is, and later it follows.
func TestRate(t *testing.T) {
	var c cycle
	at, allocated := time.Unix(1_700_000_000, 0), uint64(1000)
	after := func(d time.Duration, n uint64) float64 {
		at, allocated = at.Add(d), allocated+n
		return c.rate(at, allocated)
	}
	require.True(t, math.IsInf(after(0, 0), 1))
	require.InDelta(t, 50, after(2*time.Second, 100), 1e-6)
	require.InDelta(t, 50, after(20*time.Second, 1000), 1e-6)
	burst := after(time.Second, 1050)
	require.InDelta(t, 50+1000.0/60, burst, 1, "a burst counts for little")
	require.InDelta(t, burst/math.E, after(time.Minute, 0), 1e-6)
	for range 100 {
		after(6*time.Second, 6*1000)
	}
	require.InDelta(t, 1000, c.mean, 1)
}

// TestTuneCollector holds memory without pointers: soon the heap may grow by much less than that.
func TestTuneCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	TuneCollector()
	held := make([]byte, 400<<20)
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	require.Eventually(t, func() bool {
		runtime.GC()
		metrics.Read(goal)
		return goal[0].Value.Uint64() < 500<<20
	}, 2*time.Minute, 10*time.Millisecond)
	runtime.KeepAlive(held)
}

func TestPercentTo(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		name          string
		reserve, live uint64
		want          int
	}{
		{"nothing is live", 64 * mb, 0, 1500},
		{"the least that counts", 64 * mb, 4 * mb, 1500},
		{"little is live", 64 * mb, 16 * mb, 300},
		{"between two steps", 64 * mb, 50 * mb, 25},
		{"most of the reserve is live", 64 * mb, 60 * mb, 25},
		{"more than the reserve is live", 64 * mb, 640 * mb, 25},
		{"no reserve", 0, 640 * mb, 25},
	} {
		require.Equal(t, test.want, percentTo(test.reserve, test.live, 25), test.name)
	}
}

// TestReserveHeap: the goal is the reserve while little is live, and a part more than what is live
// afterwards.
func TestReserveHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const reserve = 300 << 20
	ReserveHeap(reserve, 25)
	goal := func() uint64 {
		runtime.GC()
		s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	require.Eventually(t, func() bool { g := goal(); return g > reserve/2 && g < reserve+reserve/4 }, 2*time.Minute, 10*time.Millisecond)
	held := make([]byte, 2*reserve)
	require.Eventually(t, func() bool { g := goal(); return g > 2*reserve && g < 3*reserve }, 2*time.Minute, 10*time.Millisecond)
	runtime.KeepAlive(held)
}

// TestSpareCollection: the heap may grow by so much before the next collection, and as always after
// it.
func TestSpareCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const spare = 300 << 20
	heap := func() (objects, goal uint64) {
		s := measured("/memory/classes/heap/objects:bytes", "/gc/heap/goal:bytes")
		return s[0], s[1]
	}
	collected := func() {
		require.Eventually(t, func() bool {
			runtime.GC()
			objects, goal := heap()
			return goal < objects+spare/2
		}, 2*time.Minute, 10*time.Millisecond)
	}
	TuneCollector()
	collected()
	SpareCollection(spare)
	objects, goal := heap()
	require.Greater(t, goal, objects+spare*9/10)
	collected()
}
