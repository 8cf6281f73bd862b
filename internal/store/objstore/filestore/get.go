package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Get implements objstore.Store. The reader reads the version that it opened, even if the object is
// replaced or deleted meanwhile.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if err := begin(ctx, key); err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, err)
	}
	if ok, err := s.spelling.right(key); err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, err)
	} else if !ok {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, objstore.ErrNotFound)
	}
	f, err := os.OpenFile(s.path(key), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case isAbsent(err), errors.Is(err, syscall.ELOOP):
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, objstore.ErrNotFound)
	case err != nil:
		return nil, objstore.Object{}, fmt.Errorf("get %q: open object: %w", key, err)
	}
	obj, n, err := seek(f, key, offset, length)
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, errors.Join(err, f.Close()))
	}
	return &body{ctx: ctx, f: f, left: n}, obj, nil
}

// seek moves f to the start of the range and returns the number of bytes to read.
func seek(f *os.File, key string, offset, length int64) (objstore.Object, int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return objstore.Object{}, 0, fmt.Errorf("stat object: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return objstore.Object{}, 0, objstore.ErrNotFound
	}
	start, n, err := objstore.Span(offset, length, fi.Size())
	if err != nil {
		return objstore.Object{}, 0, err
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return objstore.Object{}, 0, fmt.Errorf("seek object: %w", err)
	}
	return objstore.Object{Key: key, Size: fi.Size(), ETag: etagOf(fi), Modified: fi.ModTime()}, n, nil
}

type body struct {
	ctx  context.Context
	f    *os.File
	left int64 // bytes
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("read object: %w", err)
	}
	n, err := b.f.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case err == io.EOF:
		return n, fmt.Errorf("read object: %d bytes are missing: %w", b.left, io.ErrUnexpectedEOF)
	case err != nil:
		return n, fmt.Errorf("read object: %w", err)
	}
	return n, nil
}

func (b *body) Close() error { return b.f.Close() }
