package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/proc"
)

// TestRead reads a process that has worked, and waits.
func TestRead(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo; read line")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	u, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	require.Greater(t, u.RSS, uint64(100<<10))
	require.GreaterOrEqual(t, u.PeakRSS, u.RSS)
	require.NoError(t, in.Close())
	require.Error(t, cmd.Wait(), "there is no line")

	last := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	require.Positive(t, u.CPU)
	require.Less(t, u.CPU, last+10*time.Millisecond)
	require.Greater(t, u.CPU, last/2)
	_, err = proc.Read(cmd.Process.Pid)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid))
}

// TestReadIsExact reads the processor time of this process until it has grown, by less than the
// steps in which the kernel's files have it.
func TestReadIsExact(t *testing.T) {
	least := time.Hour
	require.Eventually(t, func() bool {
		before, err := proc.Read(os.Getpid())
		require.NoError(t, err)
		after, err := proc.Read(os.Getpid())
		require.NoError(t, err)
		require.Greater(t, after.CPU, before.CPU, "reading takes time")
		least = min(least, after.CPU-before.CPU)
		return least < 10*time.Millisecond
	}, time.Minute, time.Millisecond)
}

func TestSelf(t *testing.T) {
	before, err := proc.Self()
	require.NoError(t, err)
	for after := before; after == before; { // ends as soon as the kernel has charged us for it
		after, err = proc.Self()
		require.NoError(t, err)
		require.GreaterOrEqual(t, after, before)
	}
}

func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	none, err := proc.DiskUsage(dir)
	require.NoError(t, err)
	require.Zero(t, none)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	full, err := os.Create(filepath.Join(dir, "sub", "full"))
	require.NoError(t, err)
	_, err = full.WriteString(strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	require.NoError(t, full.Sync())
	require.NoError(t, full.Close())
	hole, err := os.Create(filepath.Join(dir, "hole"))
	require.NoError(t, err)
	require.NoError(t, hole.Truncate(1<<30))
	require.NoError(t, hole.Close())

	used, err := proc.DiskUsage(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, used, int64(1<<20))
	require.Less(t, used, int64(1<<22), "holes are not counted")

	_, err = proc.DiskUsage(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
