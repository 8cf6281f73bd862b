package recent_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/recenttest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestMemoryOfSegments: a segment that was left to a head gives its memory to a later one, unless
// somebody has it: his content never changes. The garbage collector may take the memory away at any
// time.
func TestMemoryOfSegments(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	for range recent.Retention/time.Minute + 1 { // from then on it keeps segments
		x.clock.t = x.clock.t.Add(time.Minute)
		x.ask(x.clock.t.UnixMilli() - begun)
	}
	put := func(read bool) (at *float64) {
		x.n++
		b, err := segmenttest.BatchIn(x.table, scrape(10, x.clock.t.UnixMilli()+int64(100*x.n)), nil)
		require.NoError(t, err)
		if x.l == nil {
			x.l = recent.NewLabels(b.View)
		}
		x.l.Extend(b.View)
		content := x.s.Of(b, x.l)
		name := string(rune('a' + x.n))
		x.s.Put(name, 1, content)
		at = unsafe.SliceData(content.V)
		if read {
			require.Same(t, content, x.s.Get(name, 1))
		}
		want := recenttest.Of(t, content)
		x.s.Stored("a", name, content)
		_, waits := x.s.Waiting(name, 1)
		require.True(t, waits)
		if read {
			require.Equal(t, want, recenttest.Of(t, content))
		} else {
			require.Empty(t, content.V)
		}
		return at
	}
	reused := false
	for range 100 {
		kept := put(true)
		require.NotSame(t, kept, put(false))
		if first := put(false); first == put(false) {
			reused = true
		}
	}
	require.True(t, reused)
}
