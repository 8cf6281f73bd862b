package blockio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Reader opens the files of one block. It implements block.Source. It belongs to one goroutine.
type Reader struct {
	ctx   context.Context
	store objstore.Store
	block key.Block
	ahead int
	files []io.Closer
	fetch int64
}

// NewReader returns a Reader whose requests ctx bounds. From files that are not local it reads at
// least ahead bytes at once and keeps them, one such range per open file, which suits sequential
// readers.
func NewReader(ctx context.Context, store objstore.Store, b key.Block, ahead int) *Reader {
	return &Reader{ctx: ctx, store: store, block: b, ahead: max(ahead, 1)}
}

// Fetched returns the bytes read so far.
func (r *Reader) Fetched() int64 { return r.fetch }

// Close closes all files that were opened.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	r.files = nil
	return errors.Join(errs...)
}

// Open opens a file of the block and returns its size in bytes. Errors: objstore.ErrNotFound.
func (r *Reader) Open(name string) (io.ReaderAt, int64, error) {
	k := r.block.File(name)
	if l, ok := r.store.(objstore.Local); ok {
		f, err := os.Open(l.LocalPath(k))
		if errors.Is(err, os.ErrNotExist) {
			return nil, 0, fmt.Errorf("open %s: %w", k, objstore.ErrNotFound)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("open %s: %w", k, err)
		}
		r.files = append(r.files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, 0, fmt.Errorf("open %s: %w", k, err)
		}
		r.fetch += info.Size()
		return f, info.Size(), nil
	}
	f := &remote{r: r, key: k}
	if err := f.load(0, 0); err != nil {
		return nil, 0, err
	}
	return f, f.size, nil
}

// remote reads an object by ranges. It keeps the last two: the one that is being read, and the
// footer before it.
type remote struct {
	r    *Reader
	key  string
	size int64
	kept [2]stretch // the last one first
}

// stretch is a range of an object.
type stretch struct {
	buf []byte
	off int64
}

func (s *stretch) holds(off, n int64) bool { return s.off <= off && off+n <= s.off+int64(len(s.buf)) }

// ReadAt implements io.ReaderAt.
func (f *remote) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at %d: %w", f.key, off, objstore.ErrRange)
	}
	if off >= f.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), f.size-off)
	if !f.kept[0].holds(off, n) {
		f.kept[0], f.kept[1] = f.kept[1], f.kept[0]
	}
	if !f.kept[0].holds(off, n) {
		if err := f.load(off, n); err != nil {
			return 0, err
		}
	}
	copy(p[:n], f.kept[0].buf[off-f.kept[0].off:])
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// load reads n bytes or more from off, in place of the older range, which is the first one now.
func (f *remote) load(off, n int64) error {
	s := &f.kept[0]
	body, obj, err := f.r.store.Get(f.r.ctx, f.key, off, max(n, int64(f.r.ahead)))
	if err != nil {
		return fmt.Errorf("read %s at %d: %w", f.key, off, err)
	}
	f.size = obj.Size
	want := min(obj.Size-off, max(n, int64(f.r.ahead)))
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.off = s.buf[:want], off
	_, err = io.ReadFull(body, s.buf)
	if err := errors.Join(err, body.Close()); err != nil {
		s.buf = s.buf[:0]
		return fmt.Errorf("read %s at %d: %w", f.key, off, err)
	}
	f.r.fetch += want
	return nil
}
