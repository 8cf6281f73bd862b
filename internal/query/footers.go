package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unique"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/segment"
)

// footers caches what segments' footers say. Segments are immutable, so entries never expire.
type footers struct {
	store   objstore.Store
	metrics *metrics

	mu    sync.Mutex
	infos *lru[*footer]
}

// footer is a segment's Info. Senders repeat their metadata in every segment, so it is kept once for all of them.
type footer struct {
	segment.Info // without Metadata
	metadata     []unique.Handle[segment.Metadata]
}

// wholeBytes is the size up to which a remote segment is fetched as a whole to read its footer: one request instead of two.
const wholeBytes = 256 << 10

func newFooters(store objstore.Store, limit int64, m *metrics) *footers {
	return &footers{store: store, metrics: m, infos: newLRU[*footer](limit)}
}

// get returns the footer of a segment, from the cache or through open.
func (f *footers) get(ctx context.Context, ref catalog.SegmentRef, files *files) (*footer, error) {
	key := ref.String()
	f.mu.Lock()
	e := f.infos.get(key)
	f.mu.Unlock()
	if e != nil {
		f.metrics.cacheHits.WithLabelValues("footer").Inc()
		return e.value, nil
	}
	f.metrics.cacheMiss.WithLabelValues("footer").Inc()
	info, err := f.read(ctx, key, ref.Size, files)
	if err != nil {
		return nil, fmt.Errorf("read footer of segment %s: %w", key, err)
	}
	ft := newFooter(info)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.infos.get(key) == nil {
		f.infos.add(key, ft, ft.bytes(key))
		f.infos.evict()
	}
	return ft, nil
}

func newFooter(info segment.Info) *footer {
	ft := &footer{Info: info, metadata: make([]unique.Handle[segment.Metadata], len(info.Metadata))}
	for i, m := range info.Metadata {
		ft.metadata[i] = unique.Make(m)
	}
	ft.Metadata = nil
	return ft
}

// bytes estimates the memory of a cache entry.
func (f *footer) bytes(key string) int64 {
	n := int64(400+2*len(key)) + 8*int64(len(f.metadata))
	for _, names := range [][]string{f.LabelColumns, f.MapNames} {
		for _, s := range names {
			n += int64(16 + len(s))
		}
	}
	return n
}

func (f *footers) read(ctx context.Context, key string, size int64, files *files) (segment.Info, error) {
	if !files.inPlace(key) && size > wholeBytes {
		return segment.ReadInfo(&storeReader{ctx, f.store, key}, size)
	}
	path, release, err := files.open(ctx, key)
	if err != nil {
		return segment.Info{}, err
	}
	defer release()
	file, err := os.Open(path)
	if err != nil {
		return segment.Info{}, err
	}
	info, err := segment.ReadInfo(file, size)
	return info, errors.Join(err, file.Close())
}

// storeReader reads ranges of an object.
type storeReader struct {
	ctx   context.Context
	store objstore.Store
	key   string
}

// ReadAt implements io.ReaderAt with one Get per call.
func (r *storeReader) ReadAt(p []byte, off int64) (int, error) {
	body, _, err := r.store.Get(r.ctx, r.key, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(body, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, errors.Join(err, body.Close())
}
