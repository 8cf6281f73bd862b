package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/fetch"
)

// files makes objects, and parts of them, local: in place if the store is a directory, otherwise as copies in the cache.
type files struct {
	local       objstore.Local // nil if the store is remote
	cache       *fetch.Cache
	footers     *footers
	concurrency int
}

// minSpilled is how much of objects may be in memory at least, if there is no room on disk.
const minSpilled = 32 << 20

func newFiles(s *Settings, store objstore.Store, work *workdir, m *metrics) *files {
	local, _ := store.(objstore.Local)
	return &files{
		local: local, concurrency: s.FetchConcurrency, footers: newFooters(store, s.FooterCacheBytes, m),
		cache: fetch.New(fetch.Settings{
			LimitBytes: s.CacheBytes, MemoryBytes: max(s.IndexCacheBytes, minSpilled), Concurrency: s.FetchConcurrency, GapBytes: fetch.DefaultGapBytes, RequestBytes: fetch.DefaultRequestBytes,
			Dir: func() (string, error) { return work.path(segmentsDir) },
		}, store, m),
	}
}

// inPlace says that the object of key is a file that SQL can name. A path that SQL would take for a pattern cannot be named: a
// tenant called a*b must not read those of its neighbours.
func (f *files) inPlace(key string) bool {
	return f.local != nil && !duck.HasGlob(f.local.LocalPath(key))
}

// unknownSize stands for the size of an object that nobody has said.
const unknownSize = -1

// open returns the local path of an object of size bytes, or of unknownSize, valid until release.
func (f *files) open(ctx context.Context, key string, size int64) (path string, release func(), err error) {
	if f.inPlace(key) {
		return f.local.LocalPath(key), func() {}, nil
	}
	return f.cache.Whole(ctx, key, size)
}

// gone makes the error of a file that is not there the store's.
func (f *files) gone(key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("%w: %s: %w", objstore.ErrNotFound, key, err)
	}
	return err
}

// locate reads the footers of objects, in their order.
func (f *files) locate(ctx context.Context, objs []object) ([]located, error) {
	out := make([]located, len(objs))
	err := f.each(ctx, len(objs), func(ctx context.Context, i int) error {
		ft, err := f.footers.get(ctx, &objs[i], f)
		out[i] = located{objs[i], ft}
		return err
	})
	return out, err
}

// each calls fn for 0 to n-1, some at a time, until the first error.
func (f *files) each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	workers := min(n, f.concurrency)
	for w := range workers {
		g.Go(func() error {
			for i := w; i < n; i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
