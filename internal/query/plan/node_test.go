package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
