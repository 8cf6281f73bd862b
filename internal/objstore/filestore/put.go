package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/promlake/promlake/internal/objstore"
)

// maxPublishTries bounds how often a Put makes the folders of its key anew because Deletes of the
// last other objects in them removed them again.
const maxPublishTries = 1000

// Put implements objstore.Store. The bytes are on disk under a temporary name before they get the
// key's name, and the name is on disk before Put returns.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := s.put(ctx, key, body, cond)
	if err != nil {
		return "", fmt.Errorf("put %q: %w", key, err)
	}
	return etag, nil
}

func (s *Store) put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error) {
	if err := begin(ctx, key); err != nil {
		return "", err
	}
	if err := s.spelling.claim(key); err != nil {
		return "", err
	}
	f, err := s.writeTemp(ctx, body)
	if err != nil {
		return "", err
	}
	etag, err = s.publish(key, f, cond)
	_ = os.Remove(f.Name()) // a rename moved it; after a link or a failure a leftover does no harm
	if err == nil {
		if err := f.Sync(); err != nil { // its modification time
			return "", errors.Join(fmt.Errorf("sync object: %w", err), f.Close())
		}
	}
	if cerr := f.Close(); cerr != nil {
		return "", fmt.Errorf("close temporary file: %w", cerr)
	}
	if err != nil && !errors.Is(err, objstore.ErrPrecondition) {
		return "", err
	}
	// A refused Put tells of an object that another process may have published and not yet synced:
	// whoever hears of an object must be able to rely on it.
	if serr := syncUp(filepath.Dir(s.path(key)), s.dir); serr != nil {
		return "", serr
	}
	return etag, err
}

// publish is the commit point of a Put: it gives the temporary file a time and the key's name if
// the condition holds, and returns the new ETag.
func (s *Store) publish(key string, f *os.File, cond objstore.Condition) (etag string, err error) {
	unlock, err := s.locks.lock(key)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path := s.path(key)
	old, err := statObject(path)
	if err != nil {
		return "", err
	}
	if !holds(cond, old) {
		return "", objstore.ErrPrecondition
	}
	after := time.Unix(0, 0)
	if old != nil {
		after = old.ModTime()
	}
	err = s.clock.tick(after, func(t time.Time) error {
		if etag, err = stamp(f, t); err != nil {
			return err
		}
		return place(f.Name(), path, cond)
	})
	return etag, err
}

// place gives the file of one path the other, whose folders it makes.
func place(from, to string, cond objstore.Condition) error {
	for range maxPublishTries {
		err := name(from, to, cond)
		if err == nil {
			return nil
		}
		if err = clearWay(to, err); err != nil {
			return err
		}
	}
	return fmt.Errorf("publish object: its folders vanished %d times", maxPublishTries)
}

func holds(cond objstore.Condition, old fs.FileInfo) bool {
	return (!cond.IfAbsent || old == nil) && (cond.IfMatch == "" || old != nil && cond.IfMatch == etagOf(old))
}

// name gives the file of one path the other. IfAbsent is a link, which fails on an existing file
// whatever the locks say.
func name(from, to string, cond objstore.Condition) error {
	if cond.IfAbsent {
		return os.Link(from, to)
	}
	return os.Rename(from, to)
}

// clearWay makes another try possible after name failed with err, or returns why none is.
func clearWay(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err := os.MkdirAll(filepath.Dir(path), dirMode)
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("create folder: %w: %w", ErrConflict, err)
		case err != nil && !errors.Is(err, fs.ErrNotExist): // a folder may vanish again while those in it are made
			return fmt.Errorf("create folder: %w", err)
		}
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("publish object: %w: %w", ErrConflict, err)
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EISDIR):
		return removeEmptyDir(path, err)
	}
	return fmt.Errorf("publish object: %w", err)
}

// removeEmptyDir removes the folder that stands in an object's place if it is empty, as one is
// whose last object has just been deleted. cause is what name said.
func removeEmptyDir(path string, cause error) error {
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
