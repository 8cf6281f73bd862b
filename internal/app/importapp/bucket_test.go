package importapp

import (
	"bytes"
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// TestBucket: a block of a bucket is fetched file by file, and its directory is removed. What
// stands for a folder is no file, a block without meta.json is not complete, and no object becomes
// a file elsewhere.
func TestBucket(t *testing.T) {
	const start = 1_700_006_400_000
	block := promblocktest.Write(t, t.TempDir(), start, start+7_200_000, promblocktest.History(1, start, 2*time.Hour))
	name := filepath.Base(block)
	store := folders{memstore.New(memstore.Settings{Now: time.Now}), name + "/chunks/"}
	put := func(k string, b []byte) {
		_, err := store.Put(t.Context(), k, bytes.NewReader(b), objstore.Condition{})
		require.NoError(t, err)
	}
	want := files(t, block)
	for k, b := range want {
		put(name+"/"+k, []byte(b))
	}
	put("debug/"+name+"/meta.json", []byte("no block"))
	put(strings.Repeat("0", 26)+"/index", []byte("no meta.json"))

	dir := t.TempDir()
	killed := filepath.Join(dir, "promlake-import-killed", "block")
	require.NoError(t, os.MkdirAll(killed, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(killed, "index"), []byte("x"), 0o600))
	left := func() []string {
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".lock") })
	}
	found, err := bucket{store, dir}.list(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, name, found[0].Meta.ULID.String())
	require.Empty(t, found[0].Skipped)
	at, remove, err := found[0].fetch(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, files(t, at))
	require.Equal(t, []string{filepath.Dir(at)}, left(), "what a killed import left is removed")
	b, err := promblock.Open(at, promblock.Options{})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, remove())
	require.Empty(t, left())

	_, _, err = bucket{store, dir}.fetch(t.Context(), name+"/", []string{name + "/index", name + "/../outside"})
	require.ErrorContains(t, err, name+"/../outside")
	require.Empty(t, left())

	put(name+"/"+promblock.DeletionMark, []byte("{}"))
	found, err = bucket{store, dir}.list(t.Context())
	require.NoError(t, err)
	require.Contains(t, found[0].Skipped, "marked for deletion")
}

// folders is a store with an object that stands for a folder, as the console of S3 makes them.
type folders struct {
	objstore.Store
	folder string
}

// List implements objstore.Store.
func (s folders) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if strings.HasPrefix(s.folder, prefix) && s.folder > startAfter && !yield(objstore.Object{Key: s.folder}, nil) {
			return
		}
		s.Store.List(ctx, prefix, startAfter)(yield)
	}
}

// files returns the contents of all files below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path) // path is below dir
		out[filepath.ToSlash(name)] = string(b)
		return err
	}))
	return out
}
