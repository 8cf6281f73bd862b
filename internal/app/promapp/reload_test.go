package promapp

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHangupBeforeReady: a hangup before the process is ready neither ends the process nor is lost.
func TestHangupBeforeReady(t *testing.T) {
	ready, called := make(chan struct{}), make(chan struct{})
	end := onHangup(ready, func() { called <- struct{}{} })
	defer end()
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
	select {
	case <-called:
		t.Fatal("the process is not ready")
	default:
	}
	close(ready)
	select {
	case <-called:
	case <-time.After(3 * time.Minute):
		t.Fatal("the hangup was lost")
	}
}
