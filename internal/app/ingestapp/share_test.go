package ingestapp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/ingest"
)

func TestShares(t *testing.T) {
	d := ingest.DefaultSettings()
	require.Equal(t, d, within(d, 0))
	require.Equal(t, d, within(d, 64<<30), "nothing is larger than the defaults")

	s := within(d, 512<<20)
	require.EqualValues(t, 128<<20, s.MaxInflightBytes)
	require.EqualValues(t, 64<<20, s.MaxKnownBytes)
	require.EqualValues(t, 64<<20, s.MaxSeriesBytes)
	s = within(d, 64<<20)
	require.NoError(t, s.Validate(), "one request fits")

	d.MaxInflightBytes = 1 << 30
	require.EqualValues(t, 1<<30, within(d, 512<<20).MaxInflightBytes, "what the operator has set is kept")
}
