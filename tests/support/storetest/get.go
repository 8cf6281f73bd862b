package storetest

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func testPutGet(t *testing.T, s objstore.Store) {
	etag := put(t, s, "v1/a/x.parquet", "hello")
	put(t, s, "v1/a/y.parquet", "other")
	got, o := get(t, s, "v1/a/x.parquet")
	assert.Equal(t, "hello", got)
	assert.Equal(t, objstore.Object{Key: "v1/a/x.parquet", Size: 5, ETag: etag, Modified: o.Modified}, o)
	assert.False(t, o.Modified.IsZero())
	put(t, s, "v1/a/x.parquet", "second, longer")
	got, o = get(t, s, "v1/a/x.parquet")
	assert.Equal(t, "second, longer", got)
	assert.EqualValues(t, 14, o.Size)
}

func testRanges(t *testing.T, s objstore.Store) {
	etag := put(t, s, "k", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, -1, "0123456789"}, {0, 10, "0123456789"}, {0, 11, "0123456789"}, {0, math.MaxInt64, "0123456789"},
		{0, 1, "0"}, {0, 0, ""}, {4, 0, ""}, {4, 3, "456"}, {4, -1, "456789"}, {4, math.MinInt64, "456789"},
		{9, 1, "9"}, {9, -1, "9"}, {9, 100, "9"}, {1, math.MaxInt64, "123456789"},
		{-1, -1, "9"}, {-4, -1, "6789"}, {-10, -1, "0123456789"}, {-11, -1, "0123456789"}, {math.MinInt64, -1, "0123456789"},
		{-4, 2, "67"}, {-4, 100, "6789"}, {-4, 0, ""}, {-100, 3, "012"},
	} {
		got, o := getRange(t, s, "k", c.offset, c.length)
		assert.Equal(t, c.want, got, "offset %d length %d", c.offset, c.length)
		assert.EqualValues(t, 10, o.Size, "offset %d length %d: the full size", c.offset, c.length)
		assert.Equal(t, "k", o.Key)
		assert.Equal(t, etag, o.ETag, "offset %d length %d", c.offset, c.length)
	}
	for _, c := range [][2]int64{{10, -1}, {10, 0}, {10, 1}, {11, 5}, {math.MaxInt64, 1}, {math.MaxInt64, math.MaxInt64}} {
		_, _, err := s.Get(t.Context(), "k", c[0], c[1])
		assert.ErrorIs(t, err, objstore.ErrRange, "offset %d length %d", c[0], c[1])
	}
}

func testEmptyObject(t *testing.T, s objstore.Store) {
	put(t, s, "empty", "")
	for _, c := range [][2]int64{{0, -1}, {-1, -1}, {-5, 3}, {-5, 0}} {
		got, o := getRange(t, s, "empty", c[0], c[1])
		assert.Empty(t, got, "offset %d length %d", c[0], c[1])
		assert.EqualValues(t, 0, o.Size)
		assert.NotEmpty(t, o.ETag)
	}
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {1, -1}} {
		_, _, err := s.Get(t.Context(), "empty", c[0], c[1])
		assert.ErrorIs(t, err, objstore.ErrRange, "offset %d length %d", c[0], c[1])
	}
	assert.Equal(t, []string{"empty"}, list(t, s, "", ""))
}

// testBigObject exceeds the size from which stores upload in parts.
func testBigObject(t *testing.T, s objstore.Store) {
	const size = 16<<20 + 1
	want := pattern(size)
	upload := func(cond objstore.Condition) (string, error) {
		return s.Put(t.Context(), "big", bytes.NewReader(want), cond)
	}
	etag, err := upload(objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	_, err = upload(objstore.Condition{IfAbsent: true})
	require.ErrorIs(t, err, objstore.ErrPrecondition)

	got, o, err := read(t.Context(), s, "big", 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "the bytes differ")
	assert.Equal(t, objstore.Object{Key: "big", Size: size, ETag: etag, Modified: o.Modified}, o)
	for _, c := range [][2]int64{{size - 1, 1}, {16<<20 - 2, 3}, {size / 2, 1000}} {
		got, _, err := read(t.Context(), s, "big", c[0], c[1])
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want[c[0]:c[0]+c[1]], got), "offset %d length %d", c[0], c[1])
	}

	want[size/3]++
	next, err := upload(objstore.Condition{IfMatch: etag})
	require.NoError(t, err)
	assert.NotEqual(t, etag, next)
	_, err = upload(objstore.Condition{IfMatch: etag})
	require.ErrorIs(t, err, objstore.ErrPrecondition)
	got, _, err = read(t.Context(), s, "big", 0, -1)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "the bytes differ")
}

func testNotFound(t *testing.T, s objstore.Store) {
	put(t, s, "folder/object", "x")
	for _, key := range []string{"absent", "folder", "folder/absent", "folder/object/below"} {
		for _, c := range [][2]int64{{0, -1}, {5, 5}, {-5, -1}, {0, 0}} {
			_, _, err := s.Get(t.Context(), key, c[0], c[1])
			assert.ErrorIs(t, err, objstore.ErrNotFound, "%s offset %d length %d", key, c[0], c[1])
		}
	}
}

func testInvalidKeys(t *testing.T, s objstore.Store) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", ".tmp/a", "a\x00", "a\xff", strings.Repeat("a/", objstore.MaxKeyLen),
		strings.Repeat("x", objstore.MaxElementLen+1),
	} {
		_, _, err := s.Get(t.Context(), key, 0, -1)
		assert.ErrorIs(t, err, objstore.ErrInvalidKey, "get %.20q", key)
		_, err = s.Put(t.Context(), key, strings.NewReader("x"), objstore.Condition{})
		assert.ErrorIs(t, err, objstore.ErrInvalidKey, "put %.20q", key)
		assert.ErrorIs(t, s.Delete(t.Context(), key), objstore.ErrInvalidKey, "delete %.20q", key)
	}
	assert.Empty(t, list(t, s, "", ""))
}

func testOpenReaderSurvivesWrites(t *testing.T, s objstore.Store) {
	const size = 4 << 20 // more than connections buffer
	old := bytes.Repeat([]byte{'o'}, size)
	put(t, s, "k", string(old))
	put(t, s, "gone", string(old))
	for _, key := range []string{"k", "gone"} {
		r, _, err := s.Get(t.Context(), key, 0, -1)
		require.NoError(t, err)
		_, err = io.ReadFull(r, make([]byte, 1))
		require.NoError(t, err)
		if key == "k" {
			put(t, s, key, strings.Repeat("n", size))
		} else {
			require.NoError(t, s.Delete(t.Context(), key))
		}
		rest, err := io.ReadAll(r)
		if err == nil { // a store may also fail; it must not mix versions or end early
			assert.True(t, bytes.Equal(old[1:], rest), "%s: another version's bytes", key)
		}
		require.NoError(t, r.Close())
	}
}

func testCancelledMidway(t *testing.T, s objstore.Store) {
	put(t, s, "k", string(pattern(8<<20)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _, err := s.Get(ctx, "k", 0, -1)
	require.NoError(t, err)
	_, err = io.ReadFull(r, make([]byte, 1))
	require.NoError(t, err)
	cancel()
	_, err = io.Copy(io.Discard, r)
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close())
}

func testLocalPath(t *testing.T, s objstore.Store) {
	l, ok := s.(objstore.Local)
	if !ok {
		return // an optional interface
	}
	put(t, s, "a/b", "hello")
	b, err := os.ReadFile(l.LocalPath("a/b"))
	require.NoError(t, err)
	assert.Equal(t, "hello", string(b))
	for _, key := range []string{"a/c", "c/d", "../a/b", "", "/etc/passwd", "a/b/../b", ".tmp"} {
		p := l.LocalPath(key)
		assert.True(t, filepath.IsAbs(p), "%q: %s", key, p)
		assert.NoFileExists(t, p, "%q", key)
	}
}
