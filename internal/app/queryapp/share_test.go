package queryapp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShares(t *testing.T) {
	d := DefaultSettings()
	require.Equal(t, d, within(d, 0))
	require.Equal(t, d, within(d, 64<<30), "nothing is larger than the defaults")

	s := within(d, 1<<30)
	require.EqualValues(t, 256<<20, s.Query.MemoryLimitBytes)
	require.EqualValues(t, 128<<20, s.Query.QueryMemoryBytes)
	require.Equal(t, 16<<20, s.Query.MaxSamples)
	require.Equal(t, 16<<20, s.API.RemoteReadSampleLimit)
	require.EqualValues(t, 5_000_000, s.Query.MaxSubquerySteps)
	require.EqualValues(t, 64<<20, s.Query.IndexCacheBytes)
	require.EqualValues(t, 32<<20, s.Query.FooterCacheBytes)
	require.EqualValues(t, 1<<28/4/48, within(d, 1<<28).Query.MaxSubquerySteps)

	d.Query.MaxSamples = 123
	require.Equal(t, 123, within(d, 1<<30).Query.MaxSamples, "what the operator has set is kept")
}
