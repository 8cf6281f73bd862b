package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func testLongKeys(t *testing.T, s objstore.Store) {
	long := strings.Repeat("e", objstore.MaxElementLen)
	for _, key := range []string{long, "a/" + long + "/b"} {
		put(t, s, key, "x")
		got, _ := get(t, s, key)
		assert.Equal(t, "x", got)
	}
	// A store with a prefix may reject the longest keys, with ErrInvalidKey.
	key := strings.Repeat("a/", objstore.MaxKeyLen/2-1) + "ab"
	_, err := s.Put(t.Context(), key, strings.NewReader("x"), objstore.Condition{})
	if err != nil {
		assert.ErrorIs(t, err, objstore.ErrInvalidKey)
		return
	}
	got, _ := get(t, s, key)
	assert.Equal(t, "x", got)
}

func testBodyPosition(t *testing.T, s objstore.Store) {
	body := strings.NewReader("skipped,kept")
	_, err := body.Seek(8, io.SeekStart)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "small", body, objstore.Condition{})
	require.NoError(t, err)
	got, _ := get(t, s, "small")
	assert.Equal(t, "kept", got)

	want := pattern(17 << 20)
	big := bytes.NewReader(want)
	_, err = big.Seek(5, io.SeekStart)
	require.NoError(t, err)
	// Without ReaderAt, a store cannot read parts concurrently.
	_, err = s.Put(t.Context(), "big", struct{ io.ReadSeeker }{big}, objstore.Condition{})
	require.NoError(t, err)
	b, _, err := read(t.Context(), s, "big", 0, -1)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want[5:], b), "the bytes differ")
}

// failingBody fails when it was read up to at, also after rewinding.
type failingBody struct {
	*bytes.Reader
	at int64
}

var errBody = errors.New("body broke")

func (b failingBody) Read(p []byte) (int, error) {
	left := b.at - (b.Size() - int64(b.Len()))
	if left <= 0 {
		return 0, errBody
	}
	return b.Reader.Read(p[:min(int64(len(p)), left)])
}

func (b failingBody) ReadAt([]byte, int64) (int, error) { return 0, errBody }
func (b failingBody) WriteTo(w io.Writer) (n int64, err error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

func testBodyFails(t *testing.T, s objstore.Store) {
	put(t, s, "k", "old")
	for _, size := range []int64{1000, 17 << 20} {
		for _, key := range []string{"k", "new"} {
			body := failingBody{bytes.NewReader(pattern(int(size))), size - 10}
			_, err := s.Put(t.Context(), key, body, objstore.Condition{})
			assert.ErrorIs(t, err, errBody, "%s of %d bytes", key, size)
		}
	}
	got, _ := get(t, s, "k")
	assert.Equal(t, "old", got)
	assert.Equal(t, []string{"k"}, list(t, s, "", ""))
}

func testETagsTellBytesApart(t *testing.T, s objstore.Store) {
	values := map[string]string{} // by ETag
	for i := range 60 {
		value := fmt.Sprintf("%02d", i*i%13) // equal sizes, some values repeated
		etag := put(t, s, "k", value)
		if known, ok := values[etag]; ok {
			require.Equal(t, known, value, "ETag %s names two values", etag)
		}
		values[etag] = value
		_, o := get(t, s, "k")
		require.Equal(t, etag, o.ETag)
		if i%7 == 0 {
			require.NoError(t, s.Delete(t.Context(), "k"))
		}
	}
}

func testIfAbsent(t *testing.T, s objstore.Store) {
	cond := objstore.Condition{IfAbsent: true}
	_, err := s.Put(t.Context(), "a/k", strings.NewReader("first"), cond)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "a/k", strings.NewReader("second"), cond)
	require.ErrorIs(t, err, objstore.ErrPrecondition)
	_, err = s.Put(t.Context(), "a/k", strings.NewReader("first"), cond)
	require.ErrorIs(t, err, objstore.ErrPrecondition, "equal bytes make no difference")
	got, _ := get(t, s, "a/k")
	assert.Equal(t, "first", got)
	require.NoError(t, s.Delete(t.Context(), "a/k"))
	_, err = s.Put(t.Context(), "a/k", strings.NewReader("third"), cond)
	require.NoError(t, err)
	got, _ = get(t, s, "a/k")
	assert.Equal(t, "third", got)
}

func testIfMatch(t *testing.T, s objstore.Store) {
	_, err := s.Put(t.Context(), "k", strings.NewReader("x"), objstore.Condition{IfMatch: `"no-such-etag"`})
	require.ErrorIs(t, err, objstore.ErrPrecondition, "absent key")
	first := put(t, s, "k", "one")
	second, err := s.Put(t.Context(), "k", strings.NewReader("two"), objstore.Condition{IfMatch: first})
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", strings.NewReader("bad"), objstore.Condition{IfMatch: first})
	require.ErrorIs(t, err, objstore.ErrPrecondition, "stale ETag")
	got, o := get(t, s, "k")
	assert.Equal(t, "two", got)
	assert.Equal(t, second, o.ETag)
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		assert.Equal(t, second, o.ETag, "a listing's ETags serve conditions too")
	}
	_, err = s.Put(t.Context(), "k", strings.NewReader("three"), objstore.Condition{IfMatch: o.ETag})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "k"))
	_, err = s.Put(t.Context(), "k", strings.NewReader("bad"), objstore.Condition{IfMatch: second})
	require.ErrorIs(t, err, objstore.ErrPrecondition, "deleted key")
}

func testBothConditions(t *testing.T, s objstore.Store) {
	etag := put(t, s, "k", "one")
	for _, key := range []string{"k", "absent"} {
		_, err := s.Put(t.Context(), key, strings.NewReader("two"), objstore.Condition{IfAbsent: true, IfMatch: etag})
		assert.ErrorIs(t, err, objstore.ErrPrecondition, key)
	}
	got, _ := get(t, s, "k")
	assert.Equal(t, "one", got)
}

func testDelete(t *testing.T, s objstore.Store) {
	put(t, s, "a/b/x", "x")
	put(t, s, "a/b/y", "y")
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), "a/b/x"))
	}
	_, _, err := s.Get(t.Context(), "a/b/x", 0, -1)
	require.ErrorIs(t, err, objstore.ErrNotFound)
	for _, key := range []string{"a/b", "a", "a/b/y/z", "no/such/folder"} {
		require.NoError(t, s.Delete(t.Context(), key), key)
	}
	assert.Equal(t, []string{"a/b/y"}, list(t, s, "", ""))
	require.NoError(t, s.Delete(t.Context(), "a/b/y"))
	assert.Empty(t, list(t, s, "", ""))
	put(t, s, "a", "the folder is no folder any more")
	put(t, s, "a2/b", "x")
	assert.Equal(t, []string{"a", "a2/b"}, list(t, s, "", ""))
}

// testDeleteAll deletes keys of several folders, of which some are absent, until an error.
func testDeleteAll(t *testing.T, s objstore.Store) {
	for _, key := range []string{"a/b/x", "a/b/y", "a/x", "b/x", "b/y", "c"} {
		put(t, s, key, "x")
	}
	n, err := objstore.DeleteAll(t.Context(), s, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	for range 2 {
		n, err = objstore.DeleteAll(t.Context(), s, []string{"b/x", "a/b/x", "a/x", "no/such/folder", "a/b/y"})
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	assert.Equal(t, []string{"b/y", "c"}, list(t, s, "", ""))
	put(t, s, "a", "the folder is no folder any more")
	n, err = objstore.DeleteAll(t.Context(), s, []string{"a", "b/y", "", "c"})
	require.ErrorIs(t, err, objstore.ErrInvalidKey)
	require.Equal(t, 2, n)
	assert.Equal(t, []string{"c"}, list(t, s, "", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err = objstore.DeleteAll(ctx, s, []string{"c"})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, n)
	assert.Equal(t, []string{"c"}, list(t, s, "", ""))
}
