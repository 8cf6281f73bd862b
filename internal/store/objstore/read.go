package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Getter is the part of Store that reads objects.
type Getter interface {
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Object, error)
}

// ReadAll returns an object and its bytes. Errors: those of Get and of its body.
func ReadAll(ctx context.Context, store Getter, key string) ([]byte, Object, error) {
	return ReadInto(ctx, store, key, nil)
}

// ReadInto is ReadAll into the memory of b, whose content is lost, if that is large enough.
func ReadInto(ctx context.Context, store Getter, key string, b []byte) ([]byte, Object, error) {
	r, o, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, o, err
	}
	if b = b[:0]; int64(cap(b)) < o.Size {
		b = make([]byte, o.Size)
	}
	b = b[:o.Size]
	_, err = io.ReadFull(r, b)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, o, fmt.Errorf("read %s: %w", key, err)
	}
	return b, o, nil
}

// readerAt reads ranges of an object.
type readerAt struct {
	ctx   context.Context
	store Getter
	key   string
}

// ReaderAt returns a reader of an object that sends one Get per call, bounded by ctx.
func ReaderAt(ctx context.Context, store Getter, key string) io.ReaderAt {
	return &readerAt{ctx, store, key}
}

// ReadAt implements io.ReaderAt.
func (r *readerAt) ReadAt(p []byte, off int64) (int, error) {
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

// Measure returns body's position and the number of bytes from there to its end.
func Measure(body io.Seeker) (start, size int64, err error) {
	if start, err = body.Seek(0, io.SeekCurrent); err != nil {
		return 0, 0, fmt.Errorf("measure body: %w", err)
	}
	end, err := body.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, fmt.Errorf("measure body: %w", err)
	}
	if _, err := body.Seek(start, io.SeekStart); err != nil {
		return 0, 0, fmt.Errorf("rewind body: %w", err)
	}
	return start, end - start, nil
}
