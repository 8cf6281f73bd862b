package filestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// temp is a temporary file.
type temp struct {
	*os.File
	at     time.Time // modification time
	etag   string    // with that time
	synced bool      // content and time are durable
}

// writeTemp writes body to a new temporary file and syncs it, with the time when it was written.
// The caller must close and remove the file.
func (s *Store) writeTemp(ctx context.Context, body io.Reader) (*temp, error) {
	path := filepath.Join(s.dir, tempDir, rand.Text())
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, fmt.Errorf("create temporary file: %w", err)
	}
	f := &temp{File: file}
	if _, err = io.Copy(ctxWriter{ctx, f}, body); err != nil {
		err = fmt.Errorf("write temporary file: %w", err)
	} else if err = f.stamp(s.now()); err == nil {
		err = f.sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// stamp sets the modification time, and the ETag that follows from it.
func (f *temp) stamp(at time.Time) error {
	if err := os.Chtimes(f.Name(), at, at); err != nil {
		return fmt.Errorf("set modification time: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("stat temporary file: %w", err)
	}
	if !fi.ModTime().Equal(at) {
		return fmt.Errorf("set modification time: the file system rounds %d ns to %d ns", at.UnixNano(), fi.ModTime().UnixNano())
	}
	f.at, f.etag, f.synced = at, etagOf(fi), false
	return nil
}

// sync makes the content and the modification time durable.
func (f *temp) sync() error {
	if f.synced {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
	}
	f.synced = true
	return nil
}

// ctxWriter fails a copy when its context ends.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w ctxWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}
