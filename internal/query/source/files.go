// Package source reads the live objects of a snapshot: their footers, and ranges of their files. It
// caches footers in memory, and what it fetches on disk.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
)

// Settings bound what files keeps. Callers fill every field.
type Settings struct {
	CacheBytes      int64 // of fetched objects on disk
	MemoryBytes     int64 // of what running queries need at once beyond that, at least 32 MiB
	FooterBytes     int64 // of memory for footers
	MaxFetchedBytes int64 // of one query
	Concurrency     int   // requests to the store that one query has in flight
}

// Files reads objects: in place if the store is a directory, otherwise through copies of them, or
// of parts of them, in the cache. It is safe for concurrent use.
type Files struct {
	store       objstore.Store
	dir         objstore.Local // nil if the store is remote
	cache       *fetch.Cache
	metrics     *request.Metrics
	concurrency int
	atOnce      int64 // bytes that one query may prefetch, so that the cache has room for others

	footers *index.Cache // by key of the series file
	numbers atomic.Uint32
	stored  *recent.Segments // by this process; nil: none

	mu     sync.Mutex
	recent *memory.LRU[Identity, []Object] // of the snapshots that were read last: consecutive queries mostly read the same one
}

// minMemoryBytes is the least memory for objects that the disk has no room for.
const minMemoryBytes = 32 << 20

// New returns files of a store. stored are segments that this process has stored; nil: none. It
// does no I/O.
func New(s Settings, store objstore.Store, dir *tempdir.WorkDir, stored *recent.Segments, m *request.Metrics) *Files {
	local, _ := store.(objstore.Local)
	return &Files{
		store: store, dir: local, metrics: m, concurrency: s.Concurrency, atOnce: min(s.CacheBytes/4, s.MaxFetchedBytes),
		footers: index.NewCache(s.FooterBytes, 0, time.Now), stored: stored, recent: memory.NewLRU[Identity, []Object](maxRecentObjects),
		cache: fetch.New(fetch.Settings{
			LimitBytes: s.CacheBytes, MemoryBytes: max(s.MemoryBytes, minMemoryBytes), Concurrency: s.Concurrency,
			GapBytes: fetch.DefaultGapBytes, RequestBytes: fetch.DefaultRequestBytes,
			Dir: func() (string, error) { return dir.Path(tempdir.Fetched) },
		}, store, m),
	}
}

// Local reports whether the store is a directory, so that nothing is fetched.
func (f *Files) Local() bool { return f.dir != nil }

// Path is the local path of an object, or its key if the store is remote.
func (f *Files) Path(key string) string {
	if f.dir != nil {
		return f.dir.LocalPath(key)
	}
	return key
}

// Sharing returns ctx whose reads together keep to the limit of requests in flight.
func (f *Files) Sharing(ctx context.Context) context.Context {
	if f.Local() {
		return ctx
	}
	return f.cache.Sharing(ctx)
}

// Forget drops the local copies of an object, so that the next read asks the store.
func (f *Files) Forget(object string) error { return f.cache.Forget(object) }

// gone wraps the error of a file that does not exist in the store's error for that.
func gone(key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("%w: %s: %w", objstore.ErrNotFound, key, err)
	}
	return err
}

// Each calls fn for 0 to n-1, as many at a time as a query has requests in flight, until the first
// error.
func (f *Files) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	if n <= 1 {
		if n < 1 || ctx.Err() != nil {
			return ctx.Err()
		}
		return fn(ctx, 0)
	}
	g, gctx := errgroup.WithContext(ctx)
	workers := min(n, f.concurrency)
	for w := range workers {
		g.Go(telemetry.Guard(func() error {
			for i := w; i < n; i += workers {
				if err := gctx.Err(); err != nil {
					return err
				}
				if err := fn(gctx, i); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return g.Wait()
}
