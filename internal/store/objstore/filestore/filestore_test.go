package filestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func put(t *testing.T, s *Store, key, value string) string {
	t.Helper()
	etag, err := s.Put(t.Context(), key, strings.NewReader(value), objstore.Condition{})
	require.NoError(t, err)
	return etag
}

func keys(t *testing.T, s *Store) []string {
	t.Helper()
	var keys []string
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func TestNewMakesMissingFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	s, err := New(dir)
	require.NoError(t, err)
	put(t, s, "k", "x")
	assert.FileExists(t, filepath.Join(dir, "k"))
}

func TestNewTakesRelativePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := New("data")
	require.NoError(t, err)
	put(t, s, "k", "x")
	t.Chdir(t.TempDir())
	put(t, s, "l", "x")
	assert.Equal(t, []string{"k", "l"}, keys(t, s), "the store stays where it was opened")
}

func TestNewRefusesFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := New(dir)
		assert.ErrorContains(t, err, dir)
	}
}

func TestNewRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	_, err := New(dir)
	require.NoError(t, err)
	now := time.Unix(1_800_000_000, 0)
	file := func(name string, age time.Duration) string {
		p := filepath.Join(dir, tempDir, name)
		require.NoError(t, os.WriteFile(p, []byte("x"), 0o600))
		require.NoError(t, os.Chtimes(p, now.Add(-age), now.Add(-age)))
		return p
	}
	old, young := file("old", tempMaxAge+time.Second), file("young", tempMaxAge-time.Second)
	_, err = open(dir, func() time.Time { return now })
	require.NoError(t, err)
	assert.NoFileExists(t, old)
	assert.FileExists(t, young)
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir)
	require.NoError(t, err)
	etag := put(t, s, "a/b/k", "x")
	for _, cond := range []objstore.Condition{{IfAbsent: true}, {IfMatch: "stale"}} {
		_, err = s.Put(t.Context(), "a/b/k", strings.NewReader("y"), cond)
		require.ErrorIs(t, err, objstore.ErrPrecondition)
	}
	_, err = s.Put(t.Context(), "a/b/k", strings.NewReader("y"), objstore.Condition{IfMatch: etag})
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "a/c/k", strings.NewReader("y"), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	left, err := os.ReadDir(filepath.Join(dir, tempDir))
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files")

	require.NoError(t, s.Delete(t.Context(), "a/b/k"))
	assert.NoDirExists(t, filepath.Join(dir, "a/b"))
	assert.DirExists(t, filepath.Join(dir, "a"))
	require.NoError(t, s.Delete(t.Context(), "a/c/k"))
	assert.NoDirExists(t, filepath.Join(dir, "a"))
	assert.DirExists(t, dir)
}

func TestKeyOrFolder(t *testing.T) {
	s, err := New(t.TempDir())
	require.NoError(t, err)
	put(t, s, "a/b", "x")
	for _, cond := range []objstore.Condition{{}, {IfAbsent: true}} {
		for _, key := range []string{"a", "a/b/c", "a/b/c/d"} {
			_, err := s.Put(t.Context(), key, strings.NewReader("x"), cond)
			require.ErrorIs(t, err, ErrConflict, "%s %+v", key, cond)
			require.NotErrorIs(t, err, objstore.ErrPrecondition)
		}
	}
	require.NoError(t, os.MkdirAll(s.path("empty/folders"), 0o700))
	put(t, s, "empty/folders", "an empty folder is in nobody's way")
	assert.Equal(t, []string{"a/b", "empty/folders"}, keys(t, s))
}

func TestETagsWithoutAClock(t *testing.T) {
	dir := t.TempDir()
	clock := time.Unix(1_800_000_000, 0)
	s, err := open(dir, func() time.Time { return clock })
	require.NoError(t, err)
	etags := map[string]bool{}
	for i := range 10 {
		if i == 5 { // another process, whose clock is behind
			s, err = open(dir, func() time.Time { return clock.Add(-time.Hour) })
			require.NoError(t, err)
		}
		etags[put(t, s, "k", "same size, same bytes")] = true
		fi, err := os.Stat(s.path("k"))
		require.NoError(t, err)
		assert.False(t, fi.ModTime().Before(clock), "times never go back")
	}
	assert.Len(t, etags, 10)
}

func TestOnlyRegularFilesAreObjects(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir)
	require.NoError(t, err)
	put(t, s, "k", "x")
	require.NoError(t, os.Symlink(filepath.Join(dir, "k"), filepath.Join(dir, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".hidden"), nil, 0o600))
	assert.Equal(t, []string{"k"}, keys(t, s))
	for _, key := range []string{"link", "folder"} {
		_, _, err := s.Get(t.Context(), key, 0, -1)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
	}
}

// TestListReadsOnlyWhatItNeeds checks which entries of a folder the walk reads.
func TestListReadsOnlyWhatItNeeds(t *testing.T) {
	s, err := New(t.TempDir())
	require.NoError(t, err)
	for _, k := range []string{"a/1/x", "a/2/x", "a/3/x", "b/1/x"} {
		put(t, s, k, k)
	}
	for _, c := range []struct {
		at, prefix, startAfter string
		want                   []string
	}{
		{"", "", "", []string{"a/", "b/"}},
		{"", "a/", "", []string{"a/"}},
		{"", "", "a/~", []string{"a/", "b/"}},
		{"", "", "a0", []string{"b/"}},
		{"a/", "a/", "a/2/x", []string{"a/2/", "a/3/"}},
		{"a/", "a/2", "", []string{"a/2/"}},
		{"a/", "a/", "a/3", []string{"a/3/"}},
		{"a/", "a/", "a/20", []string{"a/3/"}},
	} {
		w := walk{ctx: t.Context(), dir: s.dir, prefix: c.prefix, startAfter: c.startAfter}
		f, items, err := w.open(c.at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		var got []string
		for _, it := range items {
			got = append(got, it.key)
		}
		assert.Equal(t, c.want, got, "%+v", c)
	}
}

func TestTruncatedFile(t *testing.T) {
	s, err := New(t.TempDir())
	require.NoError(t, err)
	put(t, s, "k", "0123456789")
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(s.path("k"), 4))
	b := make([]byte, 10)
	n, err := r.Read(b)
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	_, err = r.Read(b)
	require.ErrorContains(t, err, "6 bytes are missing")
	require.NoError(t, r.Close())
}

// TestLocksHoldAcrossStores: a second store on the directory, as in another process, holds a key's
// lock and changes the object during a conditional Put.
func TestLocksHoldAcrossStores(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir)
	require.NoError(t, err)
	other, err := New(dir)
	require.NoError(t, err)
	etag := put(t, s, "k", "old")

	unlock, err := other.locks.lock("k")
	require.NoError(t, err)
	result := make(chan error)
	go func() {
		_, err := s.Put(t.Context(), "k", strings.NewReader("mine"), objstore.Condition{IfMatch: etag})
		result <- err
	}()
	// gives a Put that ignores the lock time to finish; one that waits for the lock is not affected
	time.Sleep(50 * time.Millisecond)
	theirs, err := other.writeTemp(t.Context(), strings.NewReader("theirs"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(theirs.Name(), other.path("k")))
	require.NoError(t, unlock())
	require.ErrorIs(t, <-result, objstore.ErrPrecondition)
	b, err := os.ReadFile(s.LocalPath("k"))
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(b))
}

// TestReadsNeedNoWrites: a directory that takes no writes is opened and read. A write succeeds once
// the directory takes it.
func TestReadsNeedNoWrites(t *testing.T) {
	dir := t.TempDir()
	full, err := New(dir)
	require.NoError(t, err)
	put(t, full, "v1/a/x", "x")
	blocked := filepath.Join(dir, tempDir)
	require.NoError(t, os.Remove(blocked))
	require.NoError(t, os.WriteFile(blocked, nil, 0o600)) // the folder cannot be made
	s, err := New(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"v1/a/x"}, keys(t, s))
	b, _, err := objstore.ReadAll(t.Context(), s, "v1/a/x")
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
	_, err = s.Put(t.Context(), "v1/a/y", strings.NewReader("y"), objstore.Condition{})
	require.Error(t, err)
	require.Error(t, s.Delete(t.Context(), "v1/a/x"))
	require.NoError(t, os.Remove(blocked))
	put(t, s, "v1/a/y", "y")
	require.Equal(t, []string{"v1/a/x", "v1/a/y"}, keys(t, s))
}
