package query

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/duck"
)

// files gives DuckDB local paths of segments: in place if the store is a directory, otherwise copies in the disk cache.
type files struct {
	local       objstore.Local // nil if the store is remote
	cache       *diskCache
	footers     *footers
	concurrency int
}

// inPlace says that the object of key is a file that SQL can name. A path that SQL would take for a pattern cannot be named: a
// tenant called a*b must not read those of its neighbours.
func (f *files) inPlace(key string) bool {
	return f.local != nil && !duck.HasGlob(f.local.LocalPath(key))
}

// open returns the local path of an object, valid until release.
func (f *files) open(ctx context.Context, key string) (path string, release func(), err error) {
	if f.inPlace(key) {
		return f.local.LocalPath(key), func() {}, nil
	}
	return f.cache.acquire(ctx, key)
}

// openAll returns the local paths of segments in their order, valid until release.
func (f *files) openAll(ctx context.Context, segs []located) (paths []string, release func(), err error) {
	paths = make([]string, len(segs))
	var mu sync.Mutex
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	err = f.each(ctx, len(segs), func(ctx context.Context, i int) error {
		path, rel, err := f.open(ctx, segs[i].ref.String())
		if err != nil {
			return err
		}
		paths[i] = path
		mu.Lock()
		releases = append(releases, rel)
		mu.Unlock()
		return nil
	})
	if err != nil {
		release()
		return nil, nil, err
	}
	return paths, release, nil
}

// located is a segment with its footer.
type located struct {
	ref    catalog.SegmentRef
	footer *footer
}

// locate reads the footers of segments, in their order.
func (f *files) locate(ctx context.Context, refs []catalog.SegmentRef) ([]located, error) {
	out := make([]located, len(refs))
	err := f.each(ctx, len(refs), func(ctx context.Context, i int) error {
		ft, err := f.footers.get(ctx, refs[i], f)
		out[i] = located{refs[i], ft}
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
