package filestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrderWithoutAClock: objects that two processes put one after another have ascending times,
// with Now between them, even if the clock of each process jumps.
func TestOrderWithoutAClock(t *testing.T) {
	dir := t.TempDir()
	machine := time.Unix(1_800_000_000, 0)
	steps := []time.Duration{0, time.Hour, -time.Hour, 45 * time.Second, -20 * time.Second, 0, 65 * time.Minute, 0}
	var stores []*Store
	for range 2 {
		s, err := open(dir, func() time.Time { return machine })
		require.NoError(t, err)
		stores = append(stores, s)
	}
	last := time.Unix(0, 0)
	later := func(at time.Time) {
		t.Helper()
		require.True(t, at.After(last), "%s comes after %s", last, at)
		last = at
	}
	for i, step := range steps {
		machine = time.Unix(1_800_000_000, 0).Add(step)
		s := stores[i%2]
		k := string(rune('a' + i))
		put(t, s, k, "x")
		fi, err := os.Stat(s.path(k))
		require.NoError(t, err)
		later(fi.ModTime())
		now, err := stores[(i+1)%2].Now(t.Context())
		require.NoError(t, err)
		later(now)
	}
}

// TestSlowPut: an object whose content was slow to sync has the time when it got its name.
func TestSlowPut(t *testing.T) {
	for _, step := range []time.Duration{freshTime, freshTime + 1} {
		var shown []time.Time
		s, err := open(t.TempDir(), func() time.Time {
			shown = append(shown, time.Unix(1_800_000_000, 0).Add(time.Duration(len(shown))*step))
			return shown[len(shown)-1]
		})
		require.NoError(t, err)
		shown = nil
		put(t, s, "k", "x")
		fi, err := os.Stat(s.path("k"))
		require.NoError(t, err)
		require.Len(t, shown, 2)
		want := shown[0]
		if step > freshTime {
			want = shown[1]
		}
		require.True(t, fi.ModTime().Equal(want), "%s, %v", fi.ModTime(), shown)
	}
}

// TestClockSurvivesACrash: after the clock file lost its modification time and the machine's clock
// went back, no time is returned that may have been returned before.
func TestClockSurvivesACrash(t *testing.T) {
	dir := t.TempDir()
	machine := time.Unix(1_800_000_000, 0)
	s, err := open(dir, func() time.Time { return machine })
	require.NoError(t, err)
	before, err := s.Now(t.Context())
	require.NoError(t, err)

	machine = machine.Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, lockDir, "clock"), machine, machine))
	s, err = open(dir, func() time.Time { return machine })
	require.NoError(t, err)
	s.clock.boot = strings.Repeat("x", len(s.clock.boot))
	after, err := s.Now(t.Context())
	require.NoError(t, err)
	require.True(t, after.After(before))
	require.False(t, after.After(before.Add(clockLease+time.Second)))
	again, err := s.Now(t.Context())
	require.NoError(t, err)
	require.True(t, again.After(after))
}

// TestDamagedClock: an unreadable clock file is an error.
func TestDamagedClock(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockDir, "clock"), []byte("nonsense"), 0o600))
	_, err = s.Now(t.Context())
	require.ErrorContains(t, err, "clock")
}
