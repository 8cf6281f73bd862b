// Package tempdir makes temporary directories that do not outlive a killed process for long: a
// directory has a lock file, which is flock'ed while its process lives. The next process that makes
// a directory of the same kind removes those whose lock nobody holds. A WorkDir is that of queries.
package tempdir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// lockFile is the name of the lock in a directory.
const lockFile = "lock"

// Dir is a temporary directory.
type Dir struct {
	Path string // absolute; it contains the file "lock"
	kind string
	lock *os.File
}

// Make makes a directory under root ("": that of the system), after it has removed the stale ones.
// Its name begins with kind. It holds the lock of root and kind meanwhile, so that no process takes
// a directory for stale that another has made and not yet locked.
func Make(root, kind string) (d *Dir, err error) {
	if root, err = filepath.Abs(cmp.Or(root, os.TempDir())); err != nil {
		return nil, err
	}
	all, err := lockRoot(root, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	if err := removeStale(root, kind); err != nil {
		return nil, err
	}
	d = &Dir{kind: kind}
	if d.Path, err = os.MkdirTemp(root, kind); err != nil {
		return nil, err
	}
	if d.lock, err = Hold(d.Path); err != nil {
		return nil, err
	}
	return d, nil
}

// Remove removes the directory. It holds the lock of the root as well: once the directory's own
// lock file is gone, another process would take the rest for stale, and lock it with a new file.
func (d *Dir) Remove() (err error) {
	all, err := lockRoot(filepath.Dir(d.Path), d.kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// lockRoot waits for the lock of this user's directories of a kind under root. Closing the file
// gives it back.
func lockRoot(root, kind string) (*os.File, error) {
	all, err := os.OpenFile(filepath.Join(root, fmt.Sprintf("%s%d.lock", kind, os.Getuid())), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(all.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", all.Name(), err), all.Close())
	}
	return all, nil
}

// Hold locks a directory for as long as the process lives, or until the file is closed. It fails if
// another process holds the lock.
func Hold(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s (is it another process's?): %w", lock.Name(), err), lock.Close())
	}
	return lock, nil
}

// removeStale removes the directories of a kind under root that belong to this user and whose lock
// nobody holds.
func removeStale(root, kind string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), kind) {
			continue
		}
		dir := filepath.Join(root, e.Name())
		if info, err := e.Info(); err != nil || !owned(info) {
			continue
		}
		lock, err := Hold(dir)
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

// WorkDir is the directory of one process for fetched data and spilled data, made at first use:
//
//	<dir>/lock       flock'ed while the process lives
//	<dir>/segments/  fetched objects, and parts of objects
//	<dir>/spill/     DuckDB's temporary files
//
// The contents that a former process left are removed, because a crash may have left torn files. A
// temporary directory whose lock nobody holds belonged to a killed process; the next process that
// makes one removes it.
type WorkDir struct {
	// Configured is the directory. "": a temporary one, which Close removes.
	Configured string

	mu      sync.Mutex
	dir     string       // "" until made
	release func() error // gives the lock back, and removes a temporary directory
}

// Subdirectories of a WorkDir.
const (
	Fetched = "segments"
	Spill   = "spill"
)

// temporary begins the names of temporary directories.
const temporary = "promlake-query-"

// Path returns the absolute path of a subdirectory, which exists.
func (w *WorkDir) Path(sub string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.make(); err != nil {
			return "", fmt.Errorf("make query cache directory: %w", err)
		}
	}
	return filepath.Join(w.dir, sub), nil
}

func (w *WorkDir) make() error {
	dir, release, err := w.locked()
	if err != nil {
		return err
	}
	for _, sub := range []string{Fetched, Spill} {
		p := filepath.Join(dir, sub)
		if err := errors.Join(os.RemoveAll(p), os.Mkdir(p, 0o755)); err != nil {
			return errors.Join(err, release())
		}
	}
	w.dir, w.release = dir, release
	return nil
}

// locked returns the directory, with its lock held until release.
func (w *WorkDir) locked() (dir string, release func() error, err error) {
	if w.Configured == "" {
		temp, err := Make("", temporary)
		if err != nil {
			return "", nil, err
		}
		return temp.Path, temp.Remove, nil
	}
	if err := os.MkdirAll(w.Configured, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := Hold(w.Configured)
	if err != nil {
		return "", nil, err
	}
	return w.Configured, lock.Close, nil
}

// Close removes the contents, and the directory if it is a temporary one.
func (w *WorkDir) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(filepath.Join(w.dir, Fetched)), os.RemoveAll(filepath.Join(w.dir, Spill)))
	w.dir = ""
	return errors.Join(err, w.release())
}
