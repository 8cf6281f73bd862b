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
	require.Zero(t, come(100, wanted-1), "few selectors")
	require.Zero(t, come(fresh+(lastObjects-fresh)*3/4, wanted), "most of those before had few")
	require.Equal(t, 100, come(100, wanted))
	require.Less(t, come(100, 1), lastObjects, "the selectors are gone")
	require.Zero(t, come(100, 1))
	come(100, wanted)
	for range 100 { // many objects come at once
		object++
		d.whole(object)
	}
	require.False(t, d.whole(object), "nothing is known of those before")
}
