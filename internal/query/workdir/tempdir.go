package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// temporary begins the names of temporary directories.
const temporary = "promlake-query-"

// makeTemporary makes a directory under root and locks it, after it has removed the stale ones. It
// holds root's lock meanwhile, so that no process takes a directory for stale that another has made
// and not yet locked.
func makeTemporary(root string) (dir string, lock *os.File, err error) {
	all, err := lockRoot(root)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	if err := removeStale(root); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(root, temporary); err != nil {
		return "", nil, err
	}
	lock, err = hold(dir)
	return dir, lock, err
}

// removeTemporary removes a directory of makeTemporary. It holds root's lock as well: once the
// directory's own lock file is gone, another process would take the rest for stale, and lock it
// with a new file.
func removeTemporary(dir string) (err error) {
	all, err := lockRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	return os.RemoveAll(dir)
}

// lockRoot waits for the lock of this user's temporary directories under root. Closing the file
// gives it back.
func lockRoot(root string) (*os.File, error) {
	all, err := os.OpenFile(filepath.Join(root, fmt.Sprintf("%s%d.lock", temporary, os.Getuid())), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(all.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", all.Name(), err), all.Close())
	}
	return all, nil
}

// hold locks a directory for as long as the process lives, or until the file is closed.
func hold(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s (is it another process's?): %w", lock.Name(), err), lock.Close())
	}
	return lock, nil
}

// removeStale removes the temporary directories under root that belong to this user and whose lock
// nobody holds.
func removeStale(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, temporary+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !owned(info) {
			continue
		}
		lock, err := hold(dir)
		if err != nil {
			continue // in use
		}
		errs = append(errs, os.RemoveAll(dir), lock.Close())
	}
	return errors.Join(errs...)
}

// owned reports whether a file belongs to this user. The files of others are not removed.
func owned(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
