package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/tests/support/memstore"
)

// clock is the time of a test.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1700000000, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// swapped is a bucket that another one can replace.
type swapped struct{ objstore.Store }

func open(t *testing.T, store objstore.Store, c *clock) objstore.Store {
	t.Helper()
	place, _ := store.(probe.Place)
	s, err := probe.NewRooted(t.Context(), store, place, slog.New(slog.DiscardHandler), c.now)
	require.NoError(t, err)
	s.AllowWrites()
	return s.Objects()
}

func put(ctx context.Context, s objstore.Store, k string) error {
	_, err := s.Put(ctx, k, strings.NewReader("x"), objstore.Condition{})
	return err
}

// list returns the error of a listing, and whether it found something.
func list(ctx context.Context, s objstore.Store, prefix string) (found bool, err error) {
	for _, err := range s.List(ctx, prefix, "") {
		if err != nil {
			return found, err
		}
		found = true
	}
	return found, nil
}

// refused expects that nothing is answered and nothing is written.
func refused(t *testing.T, s objstore.Store) {
	t.Helper()
	ctx := t.Context()
	_, err := list(ctx, s, "v1/none/")
	require.ErrorIs(t, err, probe.ErrRoot)
	for _, err := range s.ListFolders(ctx, "v1/") {
		require.ErrorIs(t, err, probe.ErrRoot)
	}
	_, _, err = s.Get(ctx, "v1/a/manifest.json", 0, -1)
	require.ErrorIs(t, err, probe.ErrRoot)
	require.ErrorIs(t, put(ctx, s, "v1/a/new"), probe.ErrRoot)
	require.ErrorIs(t, s.Delete(ctx, "v1/a/x"), probe.ErrRoot)
	_, err = objstore.DeleteAll(ctx, s, []string{"v1/a/x"})
	require.ErrorIs(t, err, probe.ErrRoot)
}

// TestDirectoryMovesAway: a directory that is gone, or an empty or other one in its place, is an
// error for reads and writes until the first one is back.
func TestDirectoryMovesAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	files, err := filestore.New(dir)
	require.NoError(t, err)
	c := &clock{}
	s := open(t, files, c)
	require.NoError(t, put(t.Context(), s, "v1/a/x"))
	require.FileExists(t, filepath.Join(dir, key.Identity))

	away := dir + ".away"
	require.NoError(t, os.Rename(dir, away))
	refused(t, s)
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	refused(t, s)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "nothing is written to the other directory")
	other, err := filestore.New(dir)
	require.NoError(t, err)
	require.NoError(t, put(t.Context(), open(t, other, c), "v1/a/x"))
	c.advance(time.Minute)
	refused(t, s)

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Rename(away, dir))
	found, err := list(t.Context(), s, "v1/a/")
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, put(t.Context(), s, "v1/a/y"))

	require.NoError(t, os.Rename(dir, away))
	refused(t, s)
	require.NoError(t, os.CopyFS(dir, os.DirFS(away))) // as a file system that is mounted again
	c.advance(time.Minute)
	require.NoError(t, put(t.Context(), s, "v1/a/z"))
}

// TestBucketIsReplaced: an empty listing or a missing object reveals another bucket in the place of
// the one that was opened, at the cost of one request in ten seconds.
func TestBucketIsReplaced(t *testing.T) {
	gets := 0
	bucket := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get && c.Key == key.Identity {
			gets++
		}
		return memstore.Fault{}
	}})
	below, c := &swapped{bucket}, &clock{}
	s := open(t, below, c)
	c.advance(time.Minute)
	require.NoError(t, put(t.Context(), s, "v1/a/x"))
	require.Equal(t, 1, gets)
	c.advance(time.Minute)
	for range 100 {
		found, err := list(t.Context(), s, "v1/b/")
		require.NoError(t, err)
		require.False(t, found)
		found, err = list(t.Context(), s, "v1/a/")
		require.NoError(t, err)
		require.True(t, found)
	}
	require.Equal(t, 2, gets)

	below.Store = memstore.New(memstore.Settings{})
	c.advance(time.Minute)
	refused(t, s)
	found, err := list(t.Context(), below, "")
	require.NoError(t, err)
	require.False(t, found, "nothing is written to the other bucket")
	below.Store = bucket
	c.advance(time.Minute)
	require.NoError(t, put(t.Context(), s, "v1/a/y"))
}

// TestStoresWithoutIdentity: readers of a store from before stores had one, and writers that may not
// write it, use it as before. The first other writer creates it once, also beside others.
func TestStoresWithoutIdentity(t *testing.T) {
	denied := atomic.Bool{}
	bucket := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if denied.Load() && c.Key == key.Identity {
			return memstore.Fault{Err: errors.New("denied")}
		}
		return memstore.Fault{}
	}})
	require.NoError(t, put(t.Context(), bucket, "v1/a/x"))
	c := &clock{}
	reader := open(t, bucket, c)
	writers := []objstore.Store{open(t, bucket, c), open(t, bucket, c)}
	denied.Store(true)
	c.advance(time.Minute)
	require.NoError(t, put(t.Context(), writers[0], "v1/a/y"))
	_, err := list(t.Context(), reader, "v1/b/")
	require.NoError(t, err)
	require.NotContains(t, bucket.Keys(), key.Identity)
	denied.Store(false)
	for i := range 4 {
		c.advance(time.Minute)
		require.NoError(t, put(t.Context(), writers[i%2], "v1/a/y"))
	}
	b, _, err := objstore.ReadAll(t.Context(), bucket, key.Identity)
	require.NoError(t, err)
	sealed, err := checksum.Verify(b)
	require.NoError(t, err)
	require.True(t, sealed)
	var d map[string]any
	require.NoError(t, json.Unmarshal(b, &d))
	require.EqualValues(t, 1, d["version"])
	require.Len(t, d["id"], 26)
	c.advance(time.Minute)
	_, err = list(t.Context(), reader, "v1/b/")
	require.NoError(t, err)
}

// TestWritesWaitForTheCheck of the store; reads do not.
func TestWritesWaitForTheCheck(t *testing.T) {
	bucket := memstore.New(memstore.Settings{})
	require.NoError(t, put(t.Context(), bucket, "v1/a/x"))
	s, err := probe.NewRooted(t.Context(), bucket, nil, slog.New(slog.DiscardHandler), (&clock{}).now)
	require.NoError(t, err)
	require.ErrorIs(t, put(t.Context(), s, "v1/a/y"), objstore.ErrReadOnly)
	require.ErrorIs(t, s.Delete(t.Context(), "v1/a/x"), probe.ErrUnchecked)
	found, err := list(t.Context(), s, "v1/")
	require.NoError(t, err)
	require.True(t, found)
	s.AllowWrites()
	require.NoError(t, put(t.Context(), s, "v1/a/y"))
}
