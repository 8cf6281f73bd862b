package filestore

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/storetest"
)

func TestFoldsCase(t *testing.T) {
	dir := t.TempDir()
	folds, err := foldsCase(dir)
	require.NoError(t, err)
	require.False(t, folds)
	// On a case-insensitive file system the upper-case name refers to the same folder. This test
	// creates another folder of that name instead.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "V1"), 0o700))
	folds, err = foldsCase(dir)
	require.NoError(t, err)
	require.True(t, folds)
}

// folding returns a store that treats its file system as case-insensitive.
func folding(t *testing.T) *Store {
	t.Helper()
	s, err := New(t.TempDir())
	require.NoError(t, err)
	s.spelling = newSpelling(s.dir)
	return s
}

// TestTenantsThatDifferInCase: on a case-insensitive file system, the second spelling of a tenant
// can be neither written nor read, because it would be the data of the first.
func TestTenantsThatDifferInCase(t *testing.T) {
	s := folding(t)
	put(t, s, "v1/Team-A/manifest.json", "of Team-A")
	put(t, s, "v1/team-b/segments/W/X.parquet", "of team-b")
	for range 2 { // the second round uses known spellings
		for _, key := range []string{"v1/team-a/manifest.json", "v1/TEAM-B/segments/W/X.parquet", "V1/team-b/segments/W/X.parquet"} {
			_, err := s.Put(t.Context(), key, strings.NewReader("x"), objstore.Condition{})
			require.ErrorIs(t, err, ErrCase, key)
			require.ErrorContains(t, err, key[:len("v1/team-a")])
			_, _, err = s.Get(t.Context(), key, 0, -1)
			require.ErrorIs(t, err, objstore.ErrNotFound, key)
			require.NoError(t, s.Delete(t.Context(), key))
			for o, err := range s.List(t.Context(), key[:len("v1/team-a/")], "") {
				t.Errorf("%s %v", o.Key, err)
			}
			require.NotEqual(t, s.path(key), s.LocalPath(key))
		}
		require.Equal(t, []string{"v1/Team-A/manifest.json", "v1/team-b/segments/W/X.parquet"}, keys(t, s))
	}
	// After a tenant is removed, another may use its name.
	require.NoError(t, s.Delete(t.Context(), "v1/Team-A/manifest.json"))
	// the other spelling, which a case-insensitive file system would not have
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "v1", "team-a")))
	put(t, s, "v1/team-a/manifest.json", "x")
	_, err := s.Put(t.Context(), "v1/Team-A/manifest.json", strings.NewReader("x"), objstore.Condition{})
	require.ErrorIs(t, err, ErrCase)
}

func TestConformanceWhereCaseIsFolded(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Store { return folding(t) })
}

// TestModes: files and folders of the store are closed to other users, and the umask may restrict
// them further.
func TestModes(t *testing.T) {
	for _, tc := range []struct {
		umask     int
		file, dir fs.FileMode
	}{{0o000, 0o640, 0o750}, {0o022, 0o640, 0o750}, {0o077, 0o600, 0o700}} {
		before := syscall.Umask(tc.umask)
		dir := filepath.Join(t.TempDir(), "store")
		s, err := New(dir)
		if err == nil {
			put(t, s, "v1/a/x", "x")
		}
		syscall.Umask(before)
		require.NoError(t, err)
		seen := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			want := tc.file
			if e.IsDir() {
				want = tc.dir
			}
			require.Equal(t, want, info.Mode().Perm(), path)
			seen++
			return nil
		}))
		require.Equal(t, 8, seen, "the store, .tmp, .lock, a lock, the clock, v1, v1/a, the object")
	}
}
