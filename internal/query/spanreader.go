package query

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/query/fetch"
)

// spanReader reads an object in parts. Its caller closes it.
type spanReader interface {
	io.ReaderAt
	io.Closer
	// prefetch makes ranges of the object, each [offset, length] in bytes, local at once, so that reads of them do not wait until Close.
	prefetch(spans [][2]int64) error
	// tryPrefetch is prefetch of what can do without it: it fails, with fetch.FullError, if the disk has no room for what is not local yet.
	tryPrefetch(spans [][2]int64) error
	// cost says how many requests to the store prefetch would send now, and for how many bytes.
	cost(spans [][2]int64) (gets int, bytes int64)
}

// readerAt reads an object of size bytes: in place, or what is not local yet from the store, each byte once while it is cached. ctx bounds all
// of its reads. An error because the object is gone is objstore.ErrNotFound, and may come from any of them.
func (f *files) readerAt(ctx context.Context, key string, size int64) spanReader {
	if f.inPlace(key) {
		return &localReader{open: sync.OnceValues(func() (*os.File, error) {
			file, err := os.Open(f.local.LocalPath(key))
			return file, f.gone(key, err)
		})}
	}
	return remoteReader{f.cache.Reader(ctx, key, size), f.cache, key}
}

// localReader opens its file at the first read.
type localReader struct {
	open func() (*os.File, error)
	used atomic.Bool
}

func (r *localReader) ReadAt(p []byte, off int64) (int, error) {
	r.used.Store(true)
	file, err := r.open()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(p, off)
}

func (*localReader) prefetch([][2]int64) error { return nil }

func (*localReader) tryPrefetch([][2]int64) error { return nil }

func (*localReader) cost([][2]int64) (int, int64) { return 0, 0 }

func (r *localReader) Close() error {
	if !r.used.Load() {
		return nil
	}
	file, err := r.open()
	if err != nil {
		return nil // there is nothing to close, and whoever read was told
	}
	return file.Close()
}

type remoteReader struct {
	*fetch.Reader
	cache *fetch.Cache
	key   string
}

func (r remoteReader) prefetch(spans [][2]int64) error { return r.Prefetch(spansOf(spans)) }

func (r remoteReader) tryPrefetch(spans [][2]int64) error { return r.TryPrefetch(spansOf(spans)) }

func (r remoteReader) cost(spans [][2]int64) (gets int, bytes int64) {
	return r.cache.Cost(r.key, spansOf(spans))
}

func spansOf(spans [][2]int64) []fetch.Span {
	out := make([]fetch.Span, len(spans))
	for i, s := range spans {
		out[i] = fetch.Span{Offset: s[0], Length: s[1]}
	}
	return out
}
