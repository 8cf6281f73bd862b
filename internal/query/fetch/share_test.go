package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// heldStore blocks requests until the test decides their outcome or releases them.
type heldStore struct {
	Store
	hold chan error
	free bool
}

func (s *heldStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if !s.free {
		select {
		case err := <-s.hold:
			if err != nil {
				return nil, objstore.Object{}, err
			}
		case <-ctx.Done():
			return nil, objstore.Object{}, ctx.Err()
		}
	}
	return s.Store.Get(ctx, key, offset, length)
}

// TestPartsAreShared: a caller that needs bytes that another call is fetching waits for them, and
// fetches its other bytes meanwhile.
func TestPartsAreShared(t *testing.T) {
	object := randomBytes(rand.New(rand.NewPCG(6, 7)), 1000)
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		giveUp bool // the first caller
		fail   error
		first  error
		again  bool // another caller fetches the first one's bytes
	}{
		{"success", false, nil, nil, false},
		{"the first gives up", true, nil, context.Canceled, true},
		{"the first fails", false, boom, boom, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				inner := storeWith(t, map[string][]byte{"k": object})
				store := &heldStore{Store: inner, hold: make(chan error, 1)}
				c, _ := cacheIn(dir, store, 1<<20)
				read := func(ctx context.Context, spans ...Span) chan error {
					out := make(chan error, 1)
					go func() {
						r := c.Reader(ctx, "k", 1000)
						err := r.Prefetch(pairs(spans))
						for _, s := range spans {
							b := make([]byte, s.Length)
							if err == nil {
								_, err = r.ReadAt(b, s.Offset)
							}
							if err == nil && !bytes.Equal(b, object[s.Offset:s.Offset+s.Length]) {
								err = errors.New("wrong bytes")
							}
						}
						out <- errors.Join(err, r.Close())
					}()
					synctest.Wait()
					return out
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := read(ctx, Span{Offset: 0, Length: 50}, Span{Offset: 200, Length: 50})
				store.free = true
				second := read(t.Context(), Span{Offset: 200, Length: 50}, Span{Offset: 400, Length: 50})
				same := read(t.Context(), Span{Offset: 200, Length: 50})
				require.Equal(t, [][2]int64{{400, 50}}, inner.taken(), "what nobody fetches yet")
				if tc.giveUp {
					cancel()
				} else {
					for range 2 {
						store.hold <- tc.fail
						synctest.Wait()
						if tc.fail != nil {
							break
						}
					}
				}
				require.ErrorIs(t, <-first, tc.first)
				require.ErrorIs(t, <-second, tc.fail)
				require.ErrorIs(t, <-same, tc.fail)
				switch taken := inner.taken(); {
				case tc.again:
					require.Equal(t, [][2]int64{{200, 50}}, taken, "once for both")
				case tc.fail == nil:
					require.ElementsMatch(t, [][2]int64{{0, 50}, {200, 50}}, taken)
				default:
					require.Empty(t, taken)
				}
				n, _ := filesIn(t, dir)
				require.Equal(t, map[bool]int{true: 1, false: 2}[tc.fail != nil], n, "what failed leaves nothing behind")
			})
		})
	}
}

// crowdedStore delays its answers and records the largest number of concurrent requests.
type crowdedStore struct {
	Store
	now, most atomic.Int64
}

func (s *crowdedStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); m < n && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
		continue
	}
	time.Sleep(time.Second)
	return s.Store.Get(ctx, key, offset, length)
}

// TestSharing: calls that share a context have together as many concurrent requests as one other
// call.
func TestSharing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := &crowdedStore{Store: storeWith(t, map[string][]byte{"a": make([]byte, 1000), "b": make([]byte, 1000), "c": make([]byte, 1000)})}
		c, _ := cacheIn(dir, store, 1<<20)
		read := func(ctx context.Context, keys ...string) {
			var wg sync.WaitGroup
			for _, k := range keys {
				wg.Go(func() {
					r := c.Reader(ctx, k, 1000)
					check(t, errors.Join(r.Prefetch(pairs([]Span{{Offset: 1, Length: 999}})), r.Close()))
				})
			}
			wg.Wait()
		}
		read(c.Sharing(t.Context()), "a", "b")
		require.Equal(t, int64(4), store.most.Load())
		read(t.Context(), "c")
		require.Equal(t, int64(4), store.most.Load())
	})
}

// TestLargerFilesSupersede: a file that contains all of another one replaces it, unless that is in
// use.
func TestLargerFilesSupersede(t *testing.T) {
	dir := t.TempDir()
	store := storeWith(t, map[string][]byte{"k": make([]byte, 1000)})
	c, _ := cacheIn(dir, store, 1<<20)
	part := func(off int64) *Reader {
		r := c.Reader(t.Context(), "k", 1000)
		require.NoError(t, r.Prefetch(pairs([]Span{{Offset: off, Length: 50}})))
		return r
	}
	whole := func() {
		_, release, err := c.Whole(t.Context(), "k", -1)
		require.NoError(t, err)
		release()
	}
	files := func() int { n, _ := filesIn(t, dir); return n }
	require.NoError(t, part(0).Close())
	used := part(100)
	require.NoError(t, part(200).Close())
	require.Equal(t, 3, files())
	whole()
	require.Equal(t, 2, files(), "the object, and what is in use")
	require.NoError(t, used.Close())
	store.taken()
	require.NoError(t, part(300).Close())
	require.Empty(t, store.taken(), "the object has it")
}

// TestEveryRequestFails: whichever request fails, the call fails, no file stays, and the next call
// succeeds.
func TestEveryRequestFails(t *testing.T) {
	object := randomBytes(rand.New(rand.NewPCG(9, 7)), 2000)
	spans := []Span{{Offset: 0, Length: 30}, {Offset: 35, Length: 20}, {Offset: 100, Length: 250}, {Offset: 900, Length: 10}}
	boom := errors.New("boom")
	for _, when := range []memstore.When{memstore.Before, memstore.Midway} {
		for at := range 50 {
			var script memstore.Script
			m := memstore.New(memstore.Settings{Faults: script.Next})
			_, err := m.Put(t.Context(), "k", bytes.NewReader(object), objstore.Condition{})
			require.NoError(t, err)
			for range at {
				script.Add(memstore.On(memstore.Get), memstore.Fault{})
			}
			script.Add(memstore.On(memstore.Get), memstore.Fault{Err: boom, When: when})
			dir := t.TempDir()
			c, _ := cacheIn(dir, m, 1<<20)
			r := c.Reader(t.Context(), "k", 2000)
			err = r.Prefetch(pairs(spans))
			if script.Left() > 0 {
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.Equal(t, 5, at, "requests")
				break
			}
			require.ErrorIs(t, err, boom)
			n, _ := filesIn(t, dir)
			require.Zero(t, n)
			require.Empty(t, c.objects)
			require.NoError(t, r.Prefetch(pairs(spans)))
			b := make([]byte, 250)
			_, err = r.ReadAt(b, 100)
			require.NoError(t, err)
			require.Equal(t, object[100:350], b)
			require.NoError(t, r.Close())
		}
	}
}

// TestCost: Cost returns what a fetch then takes.
func TestCost(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 7))
	store := storeWith(t, map[string][]byte{"k": make([]byte, 5000)})
	c, g := cacheIn(t.TempDir(), store, 1<<20)
	for range 200 {
		var spans []Span
		for range 1 + rng.IntN(4) {
			spans = append(spans, Span{Offset: rng.Int64N(4800), Length: 1 + rng.Int64N(200)})
		}
		gets, size := c.Cost("k", spans)
		before := g.bytes
		r := c.Reader(t.Context(), "k", 5000)
		require.NoError(t, r.Prefetch(pairs(spans)))
		require.NoError(t, r.Close())
		require.Len(t, store.taken(), gets)
		require.Equal(t, size, g.bytes-before)
	}
	_, release, err := c.Whole(t.Context(), "k", 5000)
	require.NoError(t, err)
	release()
	gets, size := c.Cost("k", []Span{{Length: 5000}})
	require.Zero(t, gets+int(size))
}

// TestNoDirectory: a cache without a directory fails and holds no file.
func TestNoDirectory(t *testing.T) {
	c, _ := cacheIn(filepath.Join(t.TempDir(), "gone"), storeWith(t, map[string][]byte{"k": make([]byte, 50)}), 1<<20)
	r := c.Reader(t.Context(), "k", 50)
	require.ErrorIs(t, r.Prefetch(pairs([]Span{{Offset: 10, Length: 5}})), os.ErrNotExist)
	_, _, err := c.Whole(t.Context(), "k", -1)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, r.Close())
	require.Empty(t, c.objects)
}
