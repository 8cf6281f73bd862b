package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unique"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/lru"
	"github.com/promlake/promlake/internal/segment"
)

// footers caches what segments' footers and blocks' meta.json say. The objects are immutable, so entries never expire.
type footers struct {
	store   objstore.Store
	metrics *metrics

	loads fetch.Flight[*footer]

	mu    sync.Mutex
	infos *lru.Map[*footer]
}

// footer is what a planner knows of an object without reading a column. Senders repeat their metadata in every segment, so it is
// kept once for all of them.
type footer struct {
	segment.Info // of a block: Rows, Samples, times and label names; without Metadata
	metadata     []unique.Handle[segment.Metadata]
	block        *block.Meta // nil for a segment
}

// wholeBytes is the size up to which a remote segment is fetched as a whole to read its footer: what is wanted of it next comes with it.
const wholeBytes = fetch.DefaultRequestBytes

func newFooters(store objstore.Store, limit int64, m *metrics) *footers {
	return &footers{store: store, metrics: m, infos: lru.New[*footer](limit)}
}

// get returns the footer of an object, from the cache or through files. Concurrent calls for one object share a load.
func (f *footers) get(ctx context.Context, o *object, files *files) (*footer, error) {
	if ft := f.cached(o.series); ft != nil {
		f.metrics.cacheHits.WithLabelValues("footer").Inc()
		return ft, nil
	}
	return f.loads.Do(ctx, o.series, func() (*footer, error) {
		if ft := f.cached(o.series); ft != nil {
			return ft, nil
		}
		f.metrics.cacheMiss.WithLabelValues("footer").Inc()
		ft, cost, err := f.load(ctx, o, files)
		if err != nil {
			return nil, o.broken(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.infos.Add(o.series, ft, cost)
		f.infos.Evict(0)
		return ft, nil
	})
}

// cached returns the footer under a key, nil if it is not known.
func (f *footers) cached(key string) *footer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.infos.Get(key); e != nil {
		return e.Value
	}
	return nil
}

// load reads a footer and estimates its memory in bytes.
func (f *footers) load(ctx context.Context, o *object, files *files) (*footer, int64, error) {
	if o.isBlock() {
		key := o.block.File(block.MetaFile)
		b, err := f.readAll(ctx, key, files)
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", key, err)
		}
		m, err := block.ReadMeta(b)
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", key, err)
		}
		return blockFooter(&m), int64(400 + 2*len(key) + len(b)), nil
	}
	info, err := f.readInfo(ctx, o.series, o.size, files)
	if err != nil {
		return nil, 0, fmt.Errorf("read footer of segment %s: %w", o.series, err)
	}
	ft := segmentFooter(info)
	return ft, ft.bytes(o.series), nil
}

func segmentFooter(info segment.Info) *footer {
	ft := &footer{Info: info, metadata: make([]unique.Handle[segment.Metadata], len(info.Metadata))}
	for i, m := range info.Metadata {
		ft.metadata[i] = unique.Make(m)
	}
	ft.Metadata = nil
	return ft
}

func blockFooter(m *block.Meta) *footer {
	return &footer{
		Info: segment.Info{
			Rows: m.Series, Samples: m.Floats + m.Hists, MinT: m.MinT, MaxT: m.MaxT,
			LabelColumns: m.LabelColumns, MapNames: m.MapNames, HasExemplars: m.Exemplars > 0,
		},
		block: m,
	}
}

// bytes estimates the memory of a segment's cache entry.
func (f *footer) bytes(key string) int64 {
	n := int64(400+2*len(key)) + 8*int64(len(f.metadata))
	for _, names := range [][]string{f.LabelColumns, f.MapNames} {
		for _, s := range names {
			n += int64(16 + len(s))
		}
	}
	return n
}

func (f *footers) readInfo(ctx context.Context, key string, size int64, files *files) (segment.Info, error) {
	if !files.inPlace(key) && size > wholeBytes {
		return segment.ReadInfo(&storeReader{ctx, f.store, key}, size)
	}
	path, release, err := files.open(ctx, key, size)
	if err != nil {
		return segment.Info{}, err
	}
	defer release()
	file, err := os.Open(path)
	if err != nil {
		return segment.Info{}, files.gone(key, err)
	}
	info, err := segment.ReadInfo(file, size)
	return info, errors.Join(err, file.Close())
}

// readAll reads a small object. It bypasses the disk cache: what is decoded stays in memory.
func (f *footers) readAll(ctx context.Context, key string, files *files) ([]byte, error) {
	if files.inPlace(key) {
		b, err := os.ReadFile(files.local.LocalPath(key))
		return b, files.gone(key, err)
	}
	body, _, err := f.store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(body)
	return b, errors.Join(err, body.Close())
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
