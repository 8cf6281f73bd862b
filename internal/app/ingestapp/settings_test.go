package ingestapp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/ingest"
)

func TestShares(t *testing.T) {
	d := ingest.DefaultSettings()
	require.Equal(t, d, within(d, 0, nil))
	require.Equal(t, d, within(d, 64<<30, nil), "nothing is larger than the defaults")

	s := within(d, 512<<20, nil)
	require.EqualValues(t, 128<<20, s.MaxInflightBytes)
	require.EqualValues(t, 64<<20, s.MaxKnownBytes)
	require.EqualValues(t, 64<<20, s.MaxSeriesBytes)
	s = within(d, 64<<20, nil)
	require.NoError(t, s.Validate(), "one request fits")

	for _, bytes := range []int64{1 << 30, d.MaxInflightBytes} {
		given := d
		given.MaxInflightBytes = bytes
		got := within(given, 512<<20, flags.Values{{Name: "ingest.max-inflight-bytes", Source: flags.CommandLine}})
		require.Equal(t, bytes, got.MaxInflightBytes, "what the operator gave is kept, the default too")
	}
}
