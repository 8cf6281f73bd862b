package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbering: few and many keys are numbered in the order in which they come first.
func TestNumbering(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, keys := range []int{1, 2, fewEntries - 1, fewEntries, fewEntries + 1, 200} {
		var x numbering
		known := map[string]uint32{}
		for range 10 * keys {
			key := fmt.Sprint(rng.IntN(keys))
			want, again := known[key]
			if !again {
				want = uint32(len(known))
				known[key] = want
			}
			got, isNew := x.of([]byte(key))
			require.Equal(t, want, got)
			require.Equal(t, !again, isNew)
		}
		require.Equal(t, len(known), int(x.n))
	}
}

// TestMemo: few and many entries are found.
func TestMemo(t *testing.T) {
	var m memo[int, int]
	for i := range 3 * fewEntries {
		_, ok := m.get(i)
		require.False(t, ok)
		m.add(i, 2*i)
		for k := range i + 1 {
			v, ok := m.get(k)
			require.True(t, ok)
			require.Equal(t, 2*k, v)
		}
	}
}

// TestNodesOnce: each node of a large plan is listed once.
func TestNodesOnce(t *testing.T) {
	text := "c_total"
	for range 100 {
		text += " + c_total"
	}
	p := planKnown(t, text, instant, nil).Pushed[0]
	nodes := nodesOf(p.Root)
	require.Len(t, nodes, 101, "a leaf, which all share, and operators")
	require.Len(t, leavesAmong(nodes), 1)
	seen := map[Node]bool{}
	for _, n := range nodes {
		require.False(t, seen[n])
		seen[n] = true
	}
}
