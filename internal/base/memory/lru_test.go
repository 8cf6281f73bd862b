package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLRU(t *testing.T) {
	m := NewLRU[string, int](10)
	a, b := m.Add("a", 1, 4), m.Add("b", 2, 4)
	require.Empty(t, m.Evict(0))
	require.Same(t, a, m.Get("a")) // b is now the oldest
	m.Add("c", 3, 4)
	require.Equal(t, []*Entry[string, int]{b}, m.Evict(0))
	require.Nil(t, m.Get("b"))
	a.Pins = 1
	m.Add("d", 4, 100)
	out := m.Evict(0)
	require.Len(t, out, 2, "c and d go, a is pinned")
	require.Equal(t, int64(4), m.Used())
	a.Pins = 0
	m.limit = 3
	require.Equal(t, []*Entry[string, int]{a}, m.Evict(0))
	require.Zero(t, m.Used())
	require.Empty(t, m.items)
}

func TestLRURemove(t *testing.T) {
	m := NewLRU[string, int](10)
	a := m.Add("a", 1, 4)
	m.Remove(a)
	b := m.Add("a", 2, 3)
	m.Remove(a)
	require.Same(t, b, m.Get("a"), "an entry that is gone takes none with it that came later")
	require.Equal(t, int64(3), m.Used())
}
