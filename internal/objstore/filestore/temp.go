package filestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// temp is a written, synced and stamped file that has no key yet.
type temp struct {
	path string
	info fs.FileInfo
}

// writeTemp writes body to a new temporary file and syncs it.
func (s *Store) writeTemp(ctx context.Context, body io.Reader) (*temp, error) {
	path := filepath.Join(s.dir, tempDir, rand.Text())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, fmt.Errorf("create temporary file: %w", err)
	}
	t := &temp{path: path}
	if _, err = io.Copy(ctxWriter{ctx, f}, body); err != nil {
		err = fmt.Errorf("write temporary file: %w", err)
	} else {
		err = t.stamp(f, s.stamps.next())
	}
	if cerr := f.Close(); cerr != nil && err == nil {
		err = fmt.Errorf("close temporary file: %w", cerr)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return t, nil
}

// stamp sets the file's modification time, syncs the file and notes its state.
func (t *temp) stamp(f *os.File, at time.Time) error {
	if err := os.Chtimes(t.path, at, at); err != nil {
		return fmt.Errorf("set modification time: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync temporary file: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("stat temporary file: %w", err)
	}
	if !fi.ModTime().Equal(at) {
		return fmt.Errorf("set modification time: the file system rounds %d ns to %d ns", at.UnixNano(), fi.ModTime().UnixNano())
	}
	t.info = fi
	return nil
}

// stampAfter moves the file's modification time past old, which only a clock that was set back or a faster writer of
// the same key makes necessary.
func (t *temp) stampAfter(old time.Time) error {
	if t.info.ModTime().After(old) {
		return nil
	}
	f, err := os.OpenFile(t.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open temporary file: %w", err)
	}
	return errors.Join(t.stamp(f, old.Add(1)), f.Close())
}

func (s *Store) removeLeftovers() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, tempDir))
	if err != nil {
		return fmt.Errorf("list temporary files: %w", err)
	}
	oldest := s.stamps.now().Add(-tempMaxAge)
	for _, e := range entries {
		fi, err := e.Info()
		if err == nil && fi.ModTime().Before(oldest) {
			err = os.Remove(filepath.Join(s.dir, tempDir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove leftover: %w", err)
		}
	}
	return nil
}

// stamps hands out the current time in nanoseconds, never the same one twice.
type stamps struct {
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

func (s *stamps) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := time.Unix(0, s.now().UnixNano())
	if !t.After(s.last) {
		t = s.last.Add(1)
	}
	s.last = t
	return t
}

// ctxWriter ends a copy when its context ends.
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
