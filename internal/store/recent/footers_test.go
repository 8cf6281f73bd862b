package recent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/recent"
)

// TestFooters: what footers say is kept within a third of the limit, the newest of them, until
// somebody takes it, and whether or not there is room for samples.
func TestFooters(t *testing.T) {
	s := recent.New(12<<10, nil, time.Now)
	put := func(n int64) {
		s.PutFooter(fmt.Sprint(n), 10, segment.Info{Rows: n, Values: make(segment.Values, 512)})
	}
	for n := range int64(9) {
		put(n)
	}
	taken := func(key string, size int64) bool {
		info, ok := s.TakeFooter(key, size)
		require.True(t, !ok || fmt.Sprint(info.Rows) == key)
		return ok
	}
	require.False(t, taken("4", 10), "it made room")
	require.True(t, taken("5", 10))
	require.False(t, taken("5", 10), "it was taken")
	require.False(t, taken("6", 11), "an object of another size")
	s.Remove("7")
	require.False(t, taken("7", 10))
	put(8)
	require.True(t, taken("8", 10))
	require.False(t, taken("8", 10))
	s.PutFooter("9", 10, segment.Info{Rows: 9, Metadata: []segment.Metadata{{Metric: "m"}}})
	require.False(t, taken("9", 10), "metadata changes when it is encoded")
	s.PutFooter("10", 10, segment.Info{Rows: 10, Values: make(segment.Values, 5<<10)})
	require.False(t, taken("10", 10), "larger than the limit")

	var none *recent.Segments
	none.PutFooter("1", 10, segment.Info{})
	_, ok := none.TakeFooter("1", 10)
	require.False(t, ok)
}
