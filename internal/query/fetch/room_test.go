package fetch

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// watchedStore calls look before and after each request.
type watchedStore struct {
	Store
	look func()
}

func (s *watchedStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	s.look()
	defer s.look()
	return s.Store.Get(ctx, key, offset, length)
}

// TestDiskIsBounded: with many concurrent readers, neither the files on disk, complete or not, nor
// those in memory exceed their limits; every byte is right, and no file stays in memory.
func TestDiskIsBounded(t *testing.T) {
	const limit, memory, size = 1500, 8 * 900, 2000
	rng := rand.New(rand.NewPCG(5, 5))
	objects := map[string][]byte{"a": randomBytes(rng, size), "b": randomBytes(rng, size), "c": randomBytes(rng, size)}
	dir := t.TempDir()
	var c *Cache
	spilled := false
	store := &watchedStore{Store: storeWith(t, objects)}
	c, _ = cacheIn(dir, store, limit)
	c.settings.MemoryBytes = memory
	store.look = func() {
		c.mu.Lock()
		defer c.mu.Unlock() // no file is added or removed meanwhile; incomplete files only grow
		_, bytes := filesIn(t, dir)
		if bytes > limit || c.kept.Used()+c.reserved > limit || c.inMemory > memory {
			t.Errorf("%d bytes on disk, %d kept, %d reserved, %d in memory", bytes, c.kept.Used(), c.reserved, c.inMemory)
		}
		spilled = spilled || c.inMemory > 0
	}
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 100 {
				key := string(rune('a' + rng.IntN(3)))
				r := c.Reader(t.Context(), key, size)
				for range 3 {
					s := Span{Offset: rng.Int64N(size - 300), Length: 1 + rng.Int64N(300)}
					if rng.IntN(2) == 0 {
						if err := r.TryPrefetch(pairs([]Span{s})); err != nil && !isFull(err) {
							t.Error(err)
						}
					}
					b := make([]byte, s.Length)
					if _, err := r.ReadAt(b, s.Offset); !check(t, err) || !bytes.Equal(b, objects[key][s.Offset:s.Offset+s.Length]) {
						t.Errorf("wrong bytes at %v", s)
					}
				}
				check(t, r.Close())
			}
		})
	}
	wg.Wait()
	require.True(t, spilled, "the disk was too small")
	require.Zero(t, c.inMemory)
	require.Zero(t, c.reserved)
	_, bytes := filesIn(t, dir)
	require.Equal(t, c.kept.Used(), bytes)
}

// TestFull: a prefetch that is not needed fails if the disk has no room, one that is needed uses
// memory, and beyond the limit of memory it fails with an error that names the limit.
func TestFull(t *testing.T) {
	object := randomBytes(rand.New(rand.NewPCG(5, 6)), 1000)
	dir := t.TempDir()
	c, _ := cacheIn(dir, storeWith(t, map[string][]byte{"k": object}), 100)
	c.settings.MemoryBytes = 200
	r := c.Reader(t.Context(), "k", 1000)
	var full *FullError
	require.ErrorAs(t, r.TryPrefetch(pairs([]Span{{Offset: 0, Length: 150}})), &full)
	require.Equal(t, FullError{Limit: 100, Needed: 150}, *full)
	got := make([]byte, 150)
	_, err := r.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, object[:150], got)
	err = r.Prefetch(pairs([]Span{{Offset: 500, Length: 150}}))
	require.ErrorAs(t, err, &full)
	require.Equal(t, FullError{Limit: 200, Needed: 300, Memory: true}, *full)
	require.True(t, full.QueryLimit())
	require.ErrorContains(t, err, "--query.cache-bytes")
	path, release, err := c.Whole(t.Context(), "k", -1)
	require.ErrorAs(t, err, &full, "%s %v", path, release)
	require.NoError(t, r.Close())
	require.Zero(t, c.inMemory)

	c.settings.MemoryBytes = 1000
	path, release, err = c.Whole(t.Context(), "k", -1)
	require.NoError(t, err)
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, object, body)
	release()
	require.Zero(t, c.inMemory)
	n, _ := filesIn(t, dir)
	require.Zero(t, n)
}

// TestDiskIsFull: if the disk has less room than the limit, the error reports that, no file is
// short, and needed bytes are read nevertheless.
func TestDiskIsFull(t *testing.T) {
	object := randomBytes(rand.New(rand.NewPCG(5, 7)), 1000)
	c, _ := cacheIn(t.TempDir(), storeWith(t, map[string][]byte{"k": object}), 1<<20)
	full := func(f *file) *work {
		w, err := c.begin("k", f)
		require.NoError(t, err)
		require.NoError(t, w.out.Close())
		w.out, err = os.OpenFile("/dev/full", os.O_RDWR, 0)
		require.NoError(t, err)
		return w
	}
	for _, needed := range []bool{false, true} {
		w := full(&file{object: 1000, pieces: pieces([]Span{{Offset: 100, Length: 200}}), size: 200})
		temporary := w.file.path
		err := w.make(t.Context(), make(slots, 1), needed)
		if !needed {
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, "/tmp of a Lambda function")
			var full *FullError
			require.ErrorAs(t, err, &full)
			require.False(t, full.QueryLimit(), "it is nothing that the caller can change")
			require.ErrorIs(t, c.finish(w, err), syscall.ENOSPC)
			require.NoFileExists(t, temporary)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, c.finish(w, nil))
		require.NoFileExists(t, temporary)
		got, err := os.ReadFile(w.file.path)
		require.NoError(t, err)
		require.Equal(t, object[100:300], got)
		c.release(w.file)
		require.Zero(t, c.inMemory)
	}
}
