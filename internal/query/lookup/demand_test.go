package lookup

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemand(t *testing.T) {
	var d demand
	object := uint32(0)
	// come lets objects come, each of which some selectors read, and returns for how many of them the
	// whole table was read at once.
	come := func(objects, selectors int) (whole int) {
		for range objects {
			object++
			first := d.whole(object)
			if first {
				whole++
			}
			for range selectors - 1 {
				require.Equal(t, first, d.whole(object), "all selectors get the same answer")
			}
		}
		return whole
	}
	require.Zero(t, come(youngObjects+fewestJudged, worthReads), "too few came before")
	require.Equal(t, 2000, come(2000, worthReads))
	require.Less(t, come(youngObjects+judgedObjects, worthReads-1), youngObjects+judgedObjects/2, "the selectors are gone")
	require.Zero(t, come(100, worthReads-1))
	require.Zero(t, come(youngObjects+judgedObjects*3/4, worthReads), "most of those before had few")
	require.Equal(t, 10, come(10, worthReads))
	object += 2 * judgedObjects // nobody reads them
	require.Zero(t, come(1, worthReads))

	// Selectors come back to objects that others have read in between.
	d = demand{}
	for range worthReads {
		for i := range uint32(500) {
			require.False(t, d.whole(1+i))
		}
	}
	require.True(t, d.whole(501+youngObjects))
}
