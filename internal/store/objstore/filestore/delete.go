package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/promlake/promlake/internal/store/objstore"
)

var _ objstore.BatchDeleter = (*Store)(nil)

// Delete implements objstore.Store. It also removes the folders that became empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.DeleteAll(ctx, []string{key})
	return err
}

// DeleteAll implements objstore.BatchDeleter. It syncs each folder once.
func (s *Store) DeleteAll(ctx context.Context, keys []string) (n int, err error) {
	var dirs []string
	for _, key := range keys {
		dir, rerr := s.remove(ctx, key)
		if rerr != nil {
			err = fmt.Errorf("delete %q: %w", key, rerr)
			break
		}
		// Keys of a folder mostly follow one another.
		if dir != "" && (len(dirs) == 0 || dirs[len(dirs)-1] != dir) {
			dirs = append(dirs, dir)
		}
		n++
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	for _, dir := range dirs {
		if serr := s.folders.sync(dir); serr != nil {
			return 0, errors.Join(err, fmt.Errorf("delete objects: %w", serr))
		}
	}
	for _, dir := range dirs {
		s.prune(dir)
	}
	return n, err
}

// remove removes the file of an object, and returns its folder, which is to be synced even if there
// was nothing to remove: the Delete that removed the file may not have synced yet. It returns an
// empty folder if the store cannot hold the key.
func (s *Store) remove(ctx context.Context, key string) (dir string, err error) {
	if err := errors.Join(begin(ctx, key), s.prepare()); err != nil {
		return "", err
	}
	if ok, err := s.spelling.right(key); !ok || err != nil {
		return "", err
	}
	return filepath.Dir(s.path(key)), s.unlink(key)
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
