package tempdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/tempdir"
)

// TestKinds: a new directory replaces what killed processes have left of its kind, and nothing
// else.
func TestKinds(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"kind-killed/x", "other-killed/x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	first, err := tempdir.Make(root, "kind-")
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(root, "kind-killed"))
	require.DirExists(t, filepath.Join(root, "other-killed"))
	_, err = tempdir.Hold(first.Path)
	require.ErrorContains(t, err, "is it another process's?")

	second, err := tempdir.Make(root, "kind-")
	require.NoError(t, err)
	require.DirExists(t, first.Path, "it lives")
	require.NoError(t, first.Remove())
	require.NoDirExists(t, first.Path)
	require.DirExists(t, second.Path)
	require.NoError(t, second.Remove())
}

func TestRootIsAbsent(t *testing.T) {
	_, err := tempdir.Make(filepath.Join(t.TempDir(), "absent"), "kind-")
	require.ErrorIs(t, err, os.ErrNotExist)
}
