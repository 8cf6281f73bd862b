package source

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Reader reads an object in parts. Its caller closes it.
type Reader interface {
	io.ReaderAt
	io.Closer
	// Prefetch makes ranges of the object, each [offset, length] in bytes, local until Close, so
	// that reads of them do not wait.
	Prefetch(spans [][2]int64) error
	// TryPrefetch is prefetch for reads that work without it: it fails with fetch.FullError if the
	// disk has no room for the ranges that are not local yet.
	TryPrefetch(spans [][2]int64) error
	// Cost returns how many requests prefetch would send to the store now, and for how many bytes.
	Cost(spans [][2]int64) (gets int, bytes int64)
}

// Open returns a reader of an object of size bytes. It reads in place, or fetches the bytes that
// are not local yet, each once while it is cached. ctx bounds all of its reads. Any of them may
// fail with objstore.ErrNotFound.
func (f *Files) Open(ctx context.Context, key string, size int64) Reader {
	if f.Local() {
		return &localReader{dir: f.dir, key: key}
	}
	return f.cache.Reader(ctx, key, size)
}

// localReader opens its file at the first read.
type localReader struct {
	dir objstore.Local
	key string

	once sync.Once
	used atomic.Bool // once is done, or about to be
	file *os.File
	err  error
}

func (r *localReader) open() (*os.File, error) {
	r.once.Do(func() {
		r.file, r.err = os.Open(r.dir.LocalPath(r.key))
		r.err = gone(r.key, r.err)
	})
	return r.file, r.err
}

func (r *localReader) ReadAt(p []byte, off int64) (int, error) {
	r.used.Store(true)
	file, err := r.open()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(p, off)
}

func (*localReader) Prefetch([][2]int64) error { return nil }

func (*localReader) TryPrefetch([][2]int64) error { return nil }

func (*localReader) Cost([][2]int64) (int, int64) { return 0, 0 }

func (r *localReader) Close() error {
	if !r.used.Load() {
		return nil
	}
	file, err := r.open()
	if err != nil {
		return nil // there is nothing to close, and the reads have failed
	}
	return file.Close()
}
