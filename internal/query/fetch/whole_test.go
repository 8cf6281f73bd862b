package fetch

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// slowStore answers each Get with an answer that the test sends to next.
type slowStore struct {
	asked int
	next  chan answer
}

type answer struct {
	body string
	size int64
	err  error
}

func (s *slowStore) Get(ctx context.Context, key string, _, _ int64) (io.ReadCloser, objstore.Object, error) {
	s.asked++
	select {
	case a := <-s.next:
		return io.NopCloser(strings.NewReader(a.body)), objstore.Object{Key: key, Size: a.size}, a.err
	case <-ctx.Done():
		return nil, objstore.Object{}, ctx.Err()
	}
}

// gauge records the calls of a Meter.
type gauge struct {
	mu           sync.Mutex
	hits, misses int
	bytes, held  int64
}

func (g *gauge) CountLookup(_ string, hit bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if hit {
		g.hits++
	} else {
		g.misses++
	}
}

func (g *gauge) Fetched(_ context.Context, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes += n
}

func (g *gauge) Holds(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = n
}

func newTestCache(store Store, dir string) *Cache {
	return New(Settings{LimitBytes: 4, MemoryBytes: 100, Concurrency: 4, GapBytes: 100, RequestBytes: 1000, Dir: func() (string, error) { return dir, nil }}, store, &gauge{})
}

// outcome is the result of one acquire: the file's bytes or an error.
type outcome struct {
	body string
	err  error
}

func acquireAsync(ctx context.Context, c *Cache) chan outcome {
	out := make(chan outcome, 1)
	go func() {
		path, release, err := c.Whole(ctx, "k", -1)
		if err != nil {
			out <- outcome{err: err}
			return
		}
		defer release()
		b, err := os.ReadFile(path)
		out <- outcome{string(b), err}
	}()
	return out
}

func TestDownloadsAreShared(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name    string
		giveUp  bool // the first caller's context ends during the fetch
		answers []answer
		want    []outcome // of the first caller, and of the others
		asked   int
	}{
		{"success", false, []answer{{"data", 4, nil}}, []outcome{{"data", nil}, {"data", nil}}, 1},
		{"the first gives up", true, []answer{{"data", 4, nil}}, []outcome{{"", context.Canceled}, {"data", nil}}, 2},
		{"failure", false, []answer{{"", 0, boom}}, []outcome{{"", boom}, {"", boom}}, 1},
		{"torn", false, []answer{{"dat", 4, nil}}, []outcome{{"", io.ErrUnexpectedEOF}, {"", io.ErrUnexpectedEOF}}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{next: make(chan answer)}
				c := newTestCache(store, dir)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := acquireAsync(ctx, c)
				synctest.Wait()
				others := []chan outcome{acquireAsync(t.Context(), c), acquireAsync(t.Context(), c)}
				synctest.Wait()
				require.Equal(t, 1, store.asked)
				if tc.giveUp {
					cancel()
					synctest.Wait()
				}
				for _, a := range tc.answers {
					store.next <- a
				}
				check := func(want outcome, got outcome) {
					require.Equal(t, want.body, got.body)
					require.ErrorIs(t, got.err, want.err)
				}
				check(tc.want[0], <-first)
				for _, o := range others {
					check(tc.want[1], <-o)
				}
				require.Equal(t, tc.asked, store.asked)
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.LessOrEqual(t, len(files), 1, "nothing torn stays behind")
			})
		})
	}
}
