package panics_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/panics"
)

// TestGuard: a panic in a goroutine of a group is an error of the group.
func TestGuard(t *testing.T) {
	var g errgroup.Group
	g.Go(panics.Guard(func() error { panic("a defect") }))
	require.ErrorIs(t, g.Wait(), panics.Err)
	require.ErrorIs(t, panics.Guard(func() error { return io.EOF })(), io.EOF)
}
