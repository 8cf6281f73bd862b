package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/promlake/promlake/internal/objstore"
)

// diskCache keeps whole objects as local files, for DuckDB reads nothing else. Objects are immutable, so a key names its
// bytes forever. Files are complete or absent: they are renamed into place.
type diskCache struct {
	store   objstore.Store
	work    *workdir
	metrics *metrics

	mu       sync.Mutex
	files    *lru[string] // key -> path
	inflight map[string]*download
}

// download is an object on its way; done is closed once err is set.
type download struct {
	done chan struct{}
	err  error
}

func newDiskCache(store objstore.Store, work *workdir, limit int64, m *metrics) *diskCache {
	return &diskCache{store: store, work: work, metrics: m, files: newLRU[string](limit), inflight: map[string]*download{}}
}

// acquire returns the path of a local copy of an object and pins it until release. Concurrent calls for one key share a download.
func (c *diskCache) acquire(ctx context.Context, key string) (path string, release func(), err error) {
	for {
		c.mu.Lock()
		if e := c.files.get(key); e != nil {
			e.pins++
			c.mu.Unlock()
			c.metrics.cacheHits.WithLabelValues("segment").Inc()
			return e.value, func() { c.unpin(e) }, nil
		}
		d := c.inflight[key]
		if d == nil {
			break
		}
		c.mu.Unlock()
		select {
		case <-d.done:
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
		// A download that its starter gave up says nothing about this caller's luck.
		if d.err != nil && !errors.Is(d.err, context.Canceled) && !errors.Is(d.err, context.DeadlineExceeded) {
			return "", nil, d.err
		}
	}
	d := &download{done: make(chan struct{})}
	c.inflight[key] = d
	c.mu.Unlock()

	c.metrics.cacheMiss.WithLabelValues("segment").Inc()
	path, size, err := c.fetch(ctx, key)

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inflight, key)
	d.err = err
	close(d.done)
	if err != nil {
		return "", nil, err
	}
	e := c.files.add(key, path, size)
	e.pins = 1
	if err := c.shrink(); err != nil {
		e.pins = 0
		return "", nil, err
	}
	return path, func() { c.unpin(e) }, nil
}

func (c *diskCache) unpin(e *lruEntry[string]) {
	c.mu.Lock()
	e.pins--
	c.mu.Unlock()
}

// shrink removes what exceeds the budget. c.mu is held, so that no download can bring a file back in between.
func (c *diskCache) shrink() error {
	var err error
	for _, e := range c.files.evict() {
		if rerr := os.Remove(e.value); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("evict cached segment: %w", rerr))
		}
	}
	c.metrics.cacheSize.Set(float64(c.files.used))
	return err
}

// fetch copies an object into the cache directory and returns its path and size.
func (c *diskCache) fetch(ctx context.Context, key string) (path string, size int64, err error) {
	dir, err := c.work.path(segmentsDir)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256([]byte(key))
	path = filepath.Join(dir, hex.EncodeToString(sum[:])+".parquet")
	tmp, err := os.CreateTemp(dir, "fetch-*")
	if err != nil {
		return "", 0, fmt.Errorf("create cached segment: %w", err)
	}
	size, err = c.copyObject(ctx, tmp, key)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return "", 0, errors.Join(fmt.Errorf("fetch segment %s: %w", key, err), os.Remove(tmp.Name()))
	}
	c.metrics.fetched.Add(float64(size))
	return path, size, nil
}

func (c *diskCache) copyObject(ctx context.Context, w io.Writer, key string) (int64, error) {
	body, obj, err := c.store.Get(ctx, key, 0, -1)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(w, body)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err == nil && n != obj.Size {
		err = fmt.Errorf("got %d of %d bytes: %w", n, obj.Size, io.ErrUnexpectedEOF)
	}
	return n, err
}
