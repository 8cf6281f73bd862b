package fetch

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

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

// work fetches one file.
type work struct {
	cache *Cache
	file  *file
	out   *os.File
	final string // path of the complete file
}

// begin creates an incomplete file of an object. The caller holds c.mu.
func (c *Cache) begin(key string, f *file) (*work, error) {
	f.key, f.done = key, make(chan struct{})
	dir, err := c.settings.Dir()
	if err != nil {
		return nil, fmt.Errorf("begin a file for %s: %w", key, err)
	}
	w := &work{cache: c, file: f, final: filepath.Join(dir, c.name(f))}
	if w.out, err = os.CreateTemp(dir, "fetch-*"); err != nil {
		return nil, fmt.Errorf("begin a file for %s: %w", key, err)
	}
	f.path = w.out.Name()
	c.objects[key] = append(c.objects[key], f)
	return w, nil
}

// name returns a file's name. Copies of whole objects have a fixed name; files of parts are
// numbered.
func (c *Cache) name(f *file) string {
	sum := sha256.Sum256([]byte(f.key))
	name := hex.EncodeToString(sum[:])
	if f.whole {
		return name + ".parquet"
	}
	c.seq++
	return fmt.Sprintf("%s-%d.part", name, c.seq)
}

// make fetches all pieces, into memory if they are needed and the disk has no room.
func (w *work) make(ctx context.Context, s slots, needed bool) error {
	size := total(w.file.spans())
	err := w.room(size, needed)
	if err == nil {
		err = w.get(ctx, s, needed)
	}
	if needed && w.file.memory == nil && isFull(err) { // the disk has less room than LimitBytes
		if err = w.spill(size); err == nil {
			err = w.get(ctx, s, needed)
		}
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", w.file.key, err)
	}
	return nil
}

// get fetches the pieces with concurrent requests, or a whole object of unknown size.
func (w *work) get(ctx context.Context, s slots, needed bool) error {
	if w.file.pieces == nil {
		return w.getWhole(ctx, s, needed)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range requests(w.file.pieces, w.cache.settings.GapBytes, w.cache.settings.RequestBytes) {
		g.Go(telemetry.Guard(func() error {
			select {
			case s <- struct{}{}:
				defer func() { <-s }()
				return w.request(ctx, &r)
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}
	return g.Wait()
}

func (w *work) request(ctx context.Context, r *request) (err error) {
	body, obj, err := w.cache.store.Get(ctx, w.file.key, r.Offset, r.Length)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := w.file.check(obj); err != nil {
		return err
	}
	w.cache.meter.Fetched(ctx, r.Length)
	at := r.Offset
	for _, p := range r.parts {
		if _, err := io.CopyN(io.Discard, body, p.from-at); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := w.fill(p.piece.at+p.from-p.piece.span.Offset, p.n, body); err != nil {
			return err
		}
		at = p.from + p.n
	}
	return nil
}

// getWhole fetches an object without pieces: its size is unknown, or it is empty.
func (w *work) getWhole(ctx context.Context, s slots, needed bool) (err error) {
	f := w.file
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
	case <-ctx.Done():
		return ctx.Err()
	}
	body, obj, err := w.cache.store.Get(ctx, f.key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := f.check(obj); err != nil {
		return err
	}
	if err := w.room(obj.Size, needed); err != nil {
		return err
	}
	if err := w.fill(0, obj.Size, body); err != nil {
		return err
	}
	w.cache.meter.Fetched(ctx, obj.Size)
	f.size = obj.Size
	return nil
}

// check compares an object's size with the expected one.
func (f *file) check(o objstore.Object) error {
	if f.object >= 0 && o.Size != f.object {
		return fmt.Errorf("the object has %d bytes, expected %d: %w", o.Size, f.object, io.ErrUnexpectedEOF)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// fill writes n bytes of from at an offset of the file.
func (w *work) fill(at, n int64, from io.Reader) error {
	buf := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buf)
	got, err := io.CopyBuffer(io.NewOffsetWriter(w.out, at), io.LimitReader(from, n), buf[:])
	if err == nil && got != n {
		err = fmt.Errorf("got %d of %d bytes: %w", got, n, io.ErrUnexpectedEOF)
	}
	return w.cache.written(err)
}
