package request_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

func TestProgress(t *testing.T) {
	var p request.Progress
	share := func(want float64) {
		t.Helper()
		got, ok := p.Share()
		require.True(t, ok)
		require.InDelta(t, want, got, 1e-9)
	}
	_, ok := p.Share()
	require.False(t, ok, "no statement")
	p.Begin(nil)
	_, ok = p.Share()
	require.False(t, ok, "a statement without scans")

	p.Begin([]string{"a", "b"})
	share(0)
	done := int64(0)
	p.Add("a", func() (int64, int64) { return done, 4 })
	p.Add("unplanned", func() (int64, int64) { return 1, 1 })
	share(0)
	done = 2
	share(0.25)
	done = 5 // more than planned
	share(0.5)
	p.Add("b", func() (int64, int64) { return 0, 0 })
	share(1)
	p.Add("b", func() (int64, int64) { return 1, 4 }) // a second pass
	share(0.625)
	p.Begin([]string{"a"}) // the statement is tried again
	share(0)
}
