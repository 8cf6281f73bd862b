package process_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/process"
)

// TestInBackground: the work begins once the process is ready, and Drain ends it.
func TestInBackground(t *testing.T) {
	ready, calls, ended := make(chan struct{}), make(chan struct{}), false
	s := process.InBackground(process.Parts{Ready: ready}, "work", func(ctx context.Context) {
		process.Repeat(ctx, time.Nanosecond, func() {
			select {
			case calls <- struct{}{}:
			case <-ctx.Done():
			}
		})
		ended = true
	})
	require.Empty(t, s.Routes())
	select {
	case <-calls:
		t.Fatal("the work has begun before the process was ready")
	default:
	}
	close(ready)
	<-calls
	<-calls
	require.NoError(t, s.Drain(t.Context()))
	require.True(t, ended)
	require.NoError(t, s.Close())
}

// TestInBackgroundWaits: Drain waits for the work as long as its context allows, Close to its end.
func TestInBackgroundWaits(t *testing.T) {
	ready, release := make(chan struct{}), make(chan struct{})
	begun := make(chan struct{})
	s := process.InBackground(process.Parts{Ready: ready}, "work", func(context.Context) {
		close(begun)
		<-release
	})
	close(ready)
	<-begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, s.Drain(over), "end work: context canceled")
	close(release)
	require.NoError(t, s.Close())
}

// TestInBackgroundBeforeReady: what has not begun never begins.
func TestInBackgroundBeforeReady(t *testing.T) {
	s := process.InBackground(process.Parts{Ready: make(chan struct{})}, "work", func(context.Context) { t.Error("the work has begun") })
	require.NoError(t, s.Drain(t.Context()))
	require.NoError(t, s.Close())
}
