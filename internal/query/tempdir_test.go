package query_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestStaleTemporaryDirectoriesAreRemoved: a process that starts removes what killed ones have
// left, and nothing of those that live, nor of others.
func TestStaleTemporaryDirectoriesAreRemoved(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	for _, name := range []string{"promlake-query-killed/segments/x", "promlake-query-unlocked/y", "other/z", "promlake-query-a-file"} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "promlake-query-killed/lock"), nil, 0o600))
	dirs := func() (out []string) {
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
		return out
	}
	first := laketest.New(t, laketest.NewDir(t), query.Settings{})
	require.NoError(t, first.Warm())
	left := dirs()
	require.Len(t, left, 2)
	require.Contains(t, left, "other")
	require.FileExists(t, filepath.Join(root, "promlake-query-a-file"))

	second := laketest.New(t, laketest.NewDir(t), query.Settings{})
	require.NoError(t, second.Warm())
	both := dirs()
	require.Len(t, both, 3)
	for _, d := range left {
		require.True(t, slices.Contains(both, d), "%s lives", d)
	}
	require.NoError(t, first.Stage.Close())
	require.NoError(t, second.Stage.Close())
	require.Equal(t, []string{"other"}, dirs())
}
