package fetch

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// countingStore records the ranges of requests.
type countingStore struct {
	Store
	mu   sync.Mutex
	gets [][2]int64
}

func (s *countingStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	s.mu.Lock()
	s.gets = append(s.gets, [2]int64{offset, length})
	s.mu.Unlock()
	return s.Store.Get(ctx, key, offset, length)
}

// taken returns the requests since the last call.
func (s *countingStore) taken() [][2]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.gets
	s.gets = nil
	return out
}

func storeWith(t *testing.T, objects map[string][]byte) *countingStore {
	t.Helper()
	m := memstore.New(memstore.Settings{Now: func() time.Time { return time.Unix(0, 0) }})
	for k, b := range objects {
		_, err := m.Put(t.Context(), k, bytes.NewReader(b), objstore.Condition{})
		require.NoError(t, err)
	}
	return &countingStore{Store: m}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// cacheIn returns a cache of files in a directory.
func cacheIn(dir string, store Store, limit int64) (*Cache, *gauge) {
	g := &gauge{}
	return New(Settings{LimitBytes: limit, MemoryBytes: 1 << 20, Concurrency: 4, GapBytes: 10, RequestBytes: 100, Dir: func() (string, error) { return dir, nil }}, store, g), g
}

func filesIn(t *testing.T, dir string) (n int, size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	return len(entries), size
}

func TestReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	object := randomBytes(rng, 1000)
	store := storeWith(t, map[string][]byte{"k": object})
	dir := t.TempDir()
	c, _ := cacheIn(dir, store, 1<<20)

	r := c.Reader(t.Context(), "k", 1000)
	require.NoError(t, r.Prefetch(pairs([]Span{{Offset: 10, Length: 20}, {Offset: 35, Length: 5}, {Offset: 500, Length: 150}})))
	require.ElementsMatch(t, [][2]int64{{10, 30}, {500, 100}, {600, 50}}, store.taken(), "a request for neighbours, and several for what is large")
	b := make([]byte, 20)
	for _, at := range []int64{10, 12, 35, 520, 595, 630} {
		n := min(20, map[bool]int{true: 5, false: 20}[at == 35])
		if at == 12 {
			n = 18
		}
		_, err := r.ReadAt(b[:n], at)
		require.NoError(t, err)
		require.Equal(t, object[at:at+int64(n)], b[:n])
	}
	require.Empty(t, store.taken(), "all of this was there")

	n, err := r.ReadAt(b, 25)
	require.NoError(t, err)
	require.Equal(t, object[25:45], b[:n])
	require.ElementsMatch(t, [][2]int64{{30, 15}}, store.taken(), "one request for both of the ends that are missing")

	n, err = r.ReadAt(b, 990)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, object[990:], b[:n])
	_, err = r.ReadAt(b, 1000)
	require.ErrorIs(t, err, io.EOF)
	store.taken()

	again := c.Reader(t.Context(), "k", 1000)
	require.NoError(t, again.Prefetch(pairs([]Span{{Offset: 10, Length: 30}, {Offset: 990, Length: 10}})))
	require.Empty(t, store.taken(), "another reader finds it")
	require.NoError(t, again.Close())
	require.NoError(t, r.Close())
}

// TestReadersShare: concurrent readers get the right bytes, and none is fetched twice, whether the
// cache keeps everything or almost nothing.
func TestReadersShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	object := randomBytes(rng, 5000)
	for _, limit := range []int64{1 << 20, 1} {
		store := storeWith(t, map[string][]byte{"k": object})
		dir := t.TempDir()
		c, g := cacheIn(dir, store, limit)
		c.settings.GapBytes = 0
		r := c.Reader(t.Context(), "k", 5000) // it pins the files that it reads
		var wg sync.WaitGroup
		for range 8 {
			seed := rng.Uint64()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for range 50 {
					s := Span{Offset: rng.Int64N(5000), Length: rng.Int64N(300)}
					if rng.IntN(2) == 0 {
						if !check(t, r.Prefetch(pairs([]Span{{Offset: s.Offset, Length: min(s.Length, 5000-s.Offset)}}))) {
							return
						}
					}
					b := make([]byte, s.Length)
					n, err := r.ReadAt(b, s.Offset)
					if s.Offset+s.Length <= 5000 && !check(t, err) {
						return
					}
					if !bytes.Equal(object[s.Offset:s.Offset+int64(n)], b[:n]) || int64(n) != min(s.Length, 5000-s.Offset) {
						t.Errorf("wrong bytes at %v", s)
						return
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, g.bytes, int64(5000), "no byte came twice")
		require.NoError(t, r.Close())
		if limit == 1 {
			again := c.Reader(t.Context(), "k", 5000)
			_, err := again.ReadAt(make([]byte, 1), 0)
			require.NoError(t, err)
			require.NoError(t, again.Close())
		}
		n, size := filesIn(t, dir)
		require.Equal(t, g.held, size)
		if limit == 1 {
			require.LessOrEqual(t, n, 1)
		}
	}
}

func check(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestReaderFails(t *testing.T) {
	dir := t.TempDir()
	store := storeWith(t, map[string][]byte{"k": make([]byte, 50)})
	c, _ := cacheIn(dir, store, 1<<20)
	for _, tc := range []struct {
		name, key string
		size      int64
		want      error
	}{{"gone", "other", 50, objstore.ErrNotFound}, {"another size", "k", 60, io.ErrUnexpectedEOF}} {
		t.Run(tc.name, func(t *testing.T) {
			r := c.Reader(t.Context(), tc.key, tc.size)
			require.ErrorIs(t, r.Prefetch(pairs([]Span{{Offset: 10, Length: 5}})), tc.want)
			_, err := r.ReadAt(make([]byte, 5), 20)
			require.ErrorIs(t, err, tc.want)
			require.NoError(t, r.Close())
		})
	}
	n, _ := filesIn(t, dir)
	require.Zero(t, n)
	require.Empty(t, c.objects)
}

// pairs are spans as the callers of readers have them.
func pairs(spans []Span) (out [][2]int64) {
	for _, s := range spans {
		out = append(out, [2]int64{s.Offset, s.Length})
	}
	return out
}
