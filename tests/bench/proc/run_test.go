package proc_test

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/proc"
)

// TestRunLeavesOutOwnMemory runs a small command from a process with much more memory.
func TestRunLeavesOutOwnMemory(t *testing.T) {
	own := make([]byte, 256<<20)
	for i := 0; i < len(own); i += 4 << 10 {
		own[i] = 1
	}
	peak, err := proc.Run(exec.Command("sh", "-c", "sleep 1"))
	require.NoError(t, err)
	require.Positive(t, peak)
	require.Less(t, peak, int64(64<<20))
	runtime.KeepAlive(own)

	_, err = proc.Run(exec.Command("sh", "-c", "exit 3"))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
	_, err = proc.Run(exec.Command("/nowhere"))
	require.Error(t, err)
}
