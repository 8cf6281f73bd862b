package filestore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept returns the paths of a store's open folders, below the store, and whether each still is what
// its path names.
func kept(t *testing.T, s *Store) (paths []string, current []bool) {
	t.Helper()
	s.folders.mu.Lock()
	defer s.folders.mu.Unlock()
	for _, o := range s.folders.open {
		rel, err := filepath.Rel(s.dir, o.path)
		require.NoError(t, err)
		paths, current = append(paths, rel), append(current, names(o.path, o.file))
	}
	return paths, current
}

// TestKeepsTheFoldersOfTheLastObjects: of folders that were removed and made again, also by another
// store, the new ones are synced and kept.
func TestKeepsTheFoldersOfTheLastObjects(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir)
	require.NoError(t, err)
	other, err := New(dir)
	require.NoError(t, err)

	put(t, s, "a/b/1", "x")
	put(t, s, "a/b/2", "x")
	put(t, s, "c/1", "x")
	paths, current := kept(t, s)
	require.Equal(t, []string{"a/b", "c"}, paths)
	require.Equal(t, []bool{true, true}, current)

	require.NoError(t, other.Delete(t.Context(), "c/1"))
	require.NoDirExists(t, filepath.Join(dir, "c"))
	put(t, other, "c/2", "x")
	_, current = kept(t, s)
	require.Equal(t, []bool{true, false}, current)
	put(t, s, "c/3", "x")
	paths, current = kept(t, s)
	require.Equal(t, []string{"a/b", "c"}, paths)
	require.Equal(t, []bool{true, true}, current)
	require.Equal(t, []string{"a/b/1", "a/b/2", "c/2", "c/3"}, keys(t, s))
}

func TestKeepsFewFolders(t *testing.T) {
	s, err := New(t.TempDir())
	require.NoError(t, err)
	var want []string
	for i := range 3 * keepFolders {
		name := fmt.Sprintf("folder%02d", i)
		put(t, s, name+"/object", "x")
		want = append(want, name)
	}
	paths, _ := kept(t, s)
	require.Equal(t, want[2*keepFolders:], paths)

	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, f := range open {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && slices.Contains(want, filepath.Base(to)) {
			n++
		}
	}
	require.Equal(t, keepFolders, n)
}
