package telemetry_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// TestGuard: a panic in a goroutine of a group is an error of the group.
func TestGuard(t *testing.T) {
	var g errgroup.Group
	g.Go(telemetry.Guard(func() error { panic("a defect") }))
	require.ErrorIs(t, g.Wait(), telemetry.ErrPanic)
	require.ErrorIs(t, telemetry.Guard(func() error { return io.EOF })(), io.EOF)
}
