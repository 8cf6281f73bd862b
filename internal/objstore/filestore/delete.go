package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Delete implements objstore.Store. It also removes the folders that became empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.remove(ctx, key); err != nil {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, key string) error {
	if err := begin(ctx, key); err != nil {
		return err
	}
	if ok, err := s.spelling.right(key); !ok || err != nil {
		return err
	}
	if err := s.unlink(key); err != nil {
		return err
	}
	// Sync even if there was nothing to remove: the Delete that removed the file may not have
	// synced yet.
	dir := filepath.Dir(s.path(key))
	if err := s.folders.sync(dir); err != nil {
		return err
	}
	s.prune(dir)
	return nil
}

// unlink is the commit point of a Delete.
func (s *Store) unlink(key string) (err error) {
	unlock, err := s.locks.lock(key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path := s.path(key)
	fi, err := statObject(path)
	if err != nil || fi == nil {
		return err
	}
	if err := syscall.Unlink(path); err != nil && !isAbsent(err) {
		return fmt.Errorf("unlink object: %w", err)
	}
	return nil
}

// prune removes dir and the folders above it while they are empty. It races with Puts that created
// a folder and have not used it yet; they create it again. An empty folder is no object, so errors
// do not matter.
func (s *Store) prune(dir string) {
	for ; dir != s.dir; dir = filepath.Dir(dir) {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
