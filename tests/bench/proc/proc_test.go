package proc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/proc"
)

// fakeProc writes a process file system with one process, 42, whose name contains a space and a
// bracket.
func fakeProc(t *testing.T, stat, status string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "42")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o600))
	return root
}

const (
	// utime is 1234 ticks, stime 66 ticks.
	goodStat = "42 (a ser) ver) S 1 42 42 0 -1 4194560 10 0 0 0 1234 66 7 8 20 0 5 0 100 1000000 500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

	goodStatus = "Name:\ta ser) ver\nState:\tS (sleeping)\nTgid:\t42\nPid:\t42\nVmPeak:\t  900000 kB\nVmHWM:\t  123456 kB\nVmRSS:\t  1000 kB\n"
)

func TestRead(t *testing.T) {
	u, err := proc.Read(fakeProc(t, goodStat, goodStatus), 42)
	require.NoError(t, err)
	require.Equal(t, proc.Usage{CPU: 13 * time.Second, RSS: 1000 * 1024, PeakRSS: 123456 * 1024}, u)
}

func TestReadFails(t *testing.T) {
	_, err := proc.Read(fakeProc(t, goodStat, goodStatus), 43)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "43")
	_, err = proc.Read(fakeProc(t, "42 (cut", goodStatus), 42)
	require.ErrorContains(t, err, "stat of process 42")
	_, err = proc.Read(filepath.Join(t.TempDir(), "absent"), 42)
	require.Error(t, err)
}

func TestOwnUsage(t *testing.T) {
	u, err := proc.Read(proc.Root, os.Getpid())
	require.NoError(t, err)
	require.Greater(t, u.PeakRSS, uint64(1<<20))
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
