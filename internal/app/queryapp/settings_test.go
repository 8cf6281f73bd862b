package queryapp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/admin"
)

func TestShares(t *testing.T) {
	d := settings.Default[Settings]()
	require.Equal(t, d, within(d, 0, nil))
	require.Equal(t, d, within(d, 64<<30, nil), "nothing is larger than the defaults")

	s := within(d, 1<<30, nil)
	require.EqualValues(t, 256<<20, s.Query.MemoryLimitBytes)
	require.EqualValues(t, 128<<20, s.Query.QueryMemoryBytes)
	require.Equal(t, 16<<20, s.Query.MaxSamples)
	require.Equal(t, 16<<20, s.API.RemoteReadSampleLimit)
	require.EqualValues(t, 5_000_000, s.Query.MaxSubquerySteps)
	require.EqualValues(t, 64<<20, s.Query.IndexCacheBytes)
	require.EqualValues(t, 32<<20, s.Query.FooterCacheBytes)
	require.EqualValues(t, 1<<28/4/48, within(d, 1<<28, nil).Query.MaxSubquerySteps)

	for _, n := range []int{123, d.Query.MaxSamples} {
		d.Query.MaxSamples = n
		got := within(d, 1<<30, flags.Values{{Name: "query.max-samples", Source: flags.File}})
		require.Equal(t, n, got.Query.MaxSamples, "what the operator gave is kept, the default too")
	}
	require.Equal(t, d, within(ForFunction(d, 0, nil), 0, nil))
	function := ForFunction(d, 1769<<20, nil)
	require.Equal(t, function, within(function, 1<<20, nil), "a function's memory is divided once")
}

// TestJoined: the APIs and the stage agree on what they share.
func TestJoined(t *testing.T) {
	s := settings.Default[Settings]()
	s.Query.LookbackDelta, s.Query.Timeout, s.API.MaxBodyBytes, s.API.Expressions.MaxDepth = time.Minute, time.Second, 7, 9
	s = s.joined(flags.Values{{Name: "store", Text: "file://x"}})
	require.Equal(t, time.Minute, s.API.LookbackDelta)
	require.Equal(t, query.ParserOptions(), s.API.Parser)
	require.Equal(t, map[string]string{"store": "file://x"}, s.API.Flags)
	require.Equal(t, "store: \"file://x\"\n", s.API.ConfigYAML)
	require.Equal(t, admin.Settings{
		Parser: s.API.Parser, Expressions: s.API.Expressions, MaxBodyBytes: 7, Timeout: time.Second, MaxSelectors: settings.Default[Settings]().Admin.MaxSelectors,
	}, s.Admin)
}
