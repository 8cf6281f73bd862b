package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

func TestBusyLine(t *testing.T) {
	unknown := func() (float64, bool) { return 0, false }
	third := func() (float64, bool) { return 1.0 / 3, true }
	require.Empty(t, busyLine(0, third))
	require.Empty(t, busyLine(999*time.Millisecond, third))
	require.Equal(t, "["+strings.Repeat("█", 7)+strings.Repeat("░", 17)+"]  33% read, 1 s; Ctrl-C cancels", busyLine(time.Second, third))
	require.Equal(t, "running for 61 s; Ctrl-C cancels", busyLine(61999*time.Millisecond, unknown))
}

// TestBusyStatement: the statement's context has the progress that is shown, and a statement that
// ends before anything is shown leaves no trace.
func TestBusyStatement(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, width: 80}
	ctx, stop := b.busy(t.Context())
	require.NotNil(t, request.From(ctx).Progress)
	stop()
	require.True(t, out.Len() == 0 || strings.HasSuffix(out.String(), eraseLine), out.String())
}
