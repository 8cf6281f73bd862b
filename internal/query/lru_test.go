package query

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLRU(t *testing.T) {
	l := newLRU[int](10)
	a, b := l.add("a", 1, 4), l.add("b", 2, 4)
	require.Empty(t, l.evict())
	require.Same(t, a, l.get("a")) // b is now the oldest
	l.add("c", 3, 4)
	require.Equal(t, []*lruEntry[int]{b}, l.evict())
	require.Nil(t, l.get("b"))
	a.pins = 1
	l.add("d", 4, 100)
	out := l.evict()
	require.Len(t, out, 2, "c and d go, a is pinned")
	require.Equal(t, int64(4), l.used)
	a.pins = 0
	l.limit = 3
	require.Equal(t, []*lruEntry[int]{a}, l.evict())
	require.Zero(t, l.used)
	require.Empty(t, l.items)
}
