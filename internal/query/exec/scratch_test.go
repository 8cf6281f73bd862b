package exec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/plan"
)

// TestLargeScratchIsUsedFirst: an attempt over many series finds the memory of the last one, also
// if many attempts over few series come in between. The garbage collector may take it away at any
// time.
func TestLargeScratchIsUsedFirst(t *testing.T) {
	found := false
	for range 1000 {
		large := newScratch()
		large.series = make([]plan.Series, 1, fewSeries+1)
		(&Attempt{scratch: large}).Release()
		again := newScratch()
		if found = again == large; found {
			require.Empty(t, again.series)
			require.Zero(t, again.series[:1][0])
			break
		}
	}
	require.True(t, found)

	huge := newScratch()
	huge.series = make([]plan.Series, 0, keptSeries+1)
	(&Attempt{scratch: huge}).Release()
	require.NotSame(t, huge, newScratch())
}
