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
	"syscall"
	"time"

	"github.com/promlake/promlake/internal/store/objstore"
)

// maxPublishTries bounds how often a Put creates the folders of its key again, after Deletes of the
// last other objects in them removed them.
const maxPublishTries = 1000

// Put implements objstore.Store. The bytes are synced under a temporary name before they get the
// key's name, and the name is synced before Put returns.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := s.put(ctx, key, body, cond)
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, no) {
			err = fmt.Errorf("%w: %w", objstore.ErrReadOnly, err)
		}
	}
	if err != nil {
		return "", fmt.Errorf("put %q: %w", key, err)
	}
	return etag, nil
}

func (s *Store) put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error) {
	if err := begin(ctx, key); err != nil {
		return "", err
	}
	if err := errors.Join(s.prepare(), s.spelling.claim(key)); err != nil {
		return "", err
	}
	f, err := s.writeTemp(ctx, body)
	if err != nil {
		return "", err
	}
	err = s.publish(key, f, cond)
	_ = os.Remove(f.Name()) // a rename moved it; after a link or a failure a leftover is harmless
	if err == nil {
		if err := f.sync(); err != nil {
			return "", errors.Join(err, f.Close())
		}
	}
	if cerr := f.Close(); cerr != nil {
		return "", fmt.Errorf("close temporary file: %w", cerr)
	}
	if err != nil && !errors.Is(err, objstore.ErrPrecondition) {
		return "", err
	}
	// A rejected Put reveals an object that another process may have published but not yet synced:
	// it must be durable before a caller learns of it.
	if serr := s.folders.sync(filepath.Dir(s.path(key))); serr != nil {
		return "", serr
	}
	return f.etag, err
}

// freshTime is how old the time of an object may be when the object gets its name. It is far less
// than the delay after which a merge expects no more segments of a time.
const freshTime = time.Second

// publish is the commit point of a Put. If the condition holds, it gives the temporary file the
// key's name. The file keeps its time, which is synced, unless it is old or another Put or Now got
// a later one.
func (s *Store) publish(key string, f *temp, cond objstore.Condition) (err error) {
	path, after := s.path(key), time.Unix(0, 0)
	if cond != (objstore.Condition{IfAbsent: true}) { // for that, name suffices
		unlock, lerr := s.locks.lock(key)
		if lerr != nil {
			return lerr
		}
		defer func() { err = errors.Join(err, unlock()) }()
		old, serr := statObject(path)
		if serr != nil {
			return serr
		}
		if !holds(cond, old) {
			return objstore.ErrPrecondition
		}
		if old != nil {
			after = old.ModTime()
		}
	}
	want := f.at
	if now := s.now(); now.Sub(want) > freshTime {
		want = now
	}
	return s.clock.tick(want, after, func(t time.Time) error {
		if !t.Equal(f.at) {
			if err := f.stamp(t); err != nil {
				return err
			}
		}
		from := f.Name()
		for range maxPublishTries {
			err := name(from, path, cond)
			if err == nil {
				return nil
			}
			if err = clearWay(path, err); err != nil {
				return err
			}
		}
		return fmt.Errorf("publish object: its folders vanished %d times", maxPublishTries)
	})
}

func holds(cond objstore.Condition, old fs.FileInfo) bool {
	return (!cond.IfAbsent || old == nil) && (cond.IfMatch == "" || old != nil && cond.IfMatch == etagOf(old))
}

// name links or renames a file. IfAbsent uses a link, which fails if the file exists, regardless of
// locks.
func name(from, to string, cond objstore.Condition) error {
	if cond.IfAbsent {
		return os.Link(from, to)
	}
	return os.Rename(from, to)
}

// clearWay removes the cause of an error of name so that name can be tried again, or returns the
// error if it cannot.
func clearWay(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err := os.MkdirAll(filepath.Dir(path), dirMode)
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("create folder: %w: %w", ErrConflict, err)
		// a folder may be removed again while the folders in it are created
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("create folder: %w", err)
		}
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("publish object: %w: %w", ErrConflict, err)
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EISDIR):
		// A folder with the name of an object is removed if it is empty, as after a Delete of its
		// last object.
		cause := err
		fi, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("stat object: %w", err)
		case !fi.IsDir():
			return fmt.Errorf("%w: %w", objstore.ErrPrecondition, cause)
		}
		switch err := syscall.Rmdir(path); {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST):
			return fmt.Errorf("publish object: %w: %w", ErrConflict, cause)
		default:
			return fmt.Errorf("remove empty folder: %w", err)
		}
	}
	return fmt.Errorf("publish object: %w", err)
}

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
