package memory

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCollect: a collection follows garbage that is a large share of the heap, and no other.
func TestCollect(t *testing.T) {
	runtime.GC()
	held := make([]byte, 128<<20)
	collections := func(n int64) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Collect(n)
		runtime.ReadMemStats(&after)
		return after.NumForcedGC - before.NumForcedGC
	}
	require.Zero(t, collections(leastGarbage-1))
	require.EqualValues(t, 1, collections(leastGarbage))
	runtime.KeepAlive(held)
	held = make([]byte, 640<<20)
	require.Zero(t, collections(leastGarbage), "other memory is much more")
	runtime.KeepAlive(held)
}
