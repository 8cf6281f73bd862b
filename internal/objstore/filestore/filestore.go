// Package filestore keeps objects as the files of one local directory: the object of key a/b/c is
// the file dir/a/b/c.
//
//	dir/<key>           the objects, each published whole by one rename or link
//	dir/.tmp/<random>   objects being written; leftovers of a crash go after an hour
//	dir/.lock/<00–ff>   lock files; a key's is named by the key's hash
//	dir/.lock/clock     the store's clock
//
// Any number of processes may use the directory at once; the lock files (flock) order their writes.
//
// Times. Put sets a file's modification time by the store's clock, which never gives a time twice
// and never goes back, and publishes the file before the clock goes on. So the order of
// modification times is the order in which objects appeared, whatever the machine's clock does.
//
// ETags. A file's ETag is its size and its modification time in nanoseconds. So every Put changes
// the ETag, even when an inode number is used again; reading it costs a stat; and it survives a
// copy of the directory that preserves times, while one that does not changes it. It is only as
// good as the rule that nothing but this package writes the files.
//
// On a file system that folds case, as macOS has, a folder of the first two levels (v1/<tenant>)
// has the spelling in which it was made. Keys that spell it otherwise do not exist, and a Put under
// one is ErrCase.
//
// Limits of a directory: a key cannot also be the folder of other keys (a and a/b), which
// ErrConflict reports, and the file system must support flock, hard links and times in nanoseconds.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/promlake/promlake/internal/objstore"
)

// ErrConflict reports a Put under a key that is a folder of other keys, or below one that is an
// object.
var ErrConflict = errors.New("a directory cannot hold an object and a folder of one name")

const (
	tempDir = ".tmp"
	lockDir = ".lock"
	// tempMaxAge is the age at which a temporary file is taken for the leftover of a crash.
	tempMaxAge = time.Hour

	// Modes of what the store makes, from which the umask takes: other users may read nothing, and
	// the group may not write.
	fileMode = 0o640
	dirMode  = 0o750
)

var (
	_ objstore.Store = (*Store)(nil)
	_ objstore.Local = (*Store)(nil)
)

// Store is an objstore.Store over a directory. It holds no open file between calls.
type Store struct {
	dir      string // absolute
	locks    locks
	clock    *clock
	now      func() time.Time // the machine's clock, which decides what is a leftover
	spelling *spelling        // nil: the file system tells upper from lower case
}

// New opens the store in dir, creates the directory if it is missing, checks that it can be
// written, and removes temporary files that are older than an hour.
func New(dir string) (*Store, error) { return open(dir, time.Now) }

func open(dir string, now func() time.Time) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory store %q: %w", dir, err)
	}
	s := &Store{dir: abs, locks: locks{dir: filepath.Join(abs, lockDir)}, clock: newClock(abs, now), now: now}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("open directory store %q: %w", dir, err)
	}
	return s, nil
}

func (s *Store) prepare() error {
	top := s.dir // the closest folder that exists already
	for !exists(top) && top != filepath.Dir(top) {
		top = filepath.Dir(top)
	}
	for _, d := range []string{tempDir, lockDir} {
		if err := os.MkdirAll(filepath.Join(s.dir, d), dirMode); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	if err := syncUp(s.dir, top); err != nil {
		return err
	}
	if err := s.removeLeftovers(); err != nil {
		return err
	}
	probe, err := s.writeTemp(context.Background(), strings.NewReader("probe"))
	if err != nil {
		return err
	}
	folds, err := foldsCase(probe.Name())
	if err == nil && folds {
		s.spelling = newSpelling(s.dir)
	}
	if rerr := errors.Join(probe.Close(), os.Remove(probe.Name())); rerr != nil {
		err = errors.Join(err, fmt.Errorf("remove probe: %w", rerr))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// LocalPath implements objstore.Local.
func (s *Store) LocalPath(key string) string {
	if ok, err := s.spelling.right(key); !ok || err != nil || objstore.ValidKey(key) != nil {
		return filepath.Join(s.dir, tempDir, "invalid-key") // temporary files have other names
	}
	return s.path(key)
}

// path is the file of a valid key.
func (s *Store) path(key string) string { return filepath.Join(s.dir, filepath.FromSlash(key)) }

func etagOf(fi fs.FileInfo) string {
	return strconv.FormatInt(fi.Size(), 16) + "-" + strconv.FormatInt(fi.ModTime().UnixNano(), 16)
}

func objectOf(key string, fi fs.FileInfo) objstore.Object {
	return objstore.Object{Key: key, Size: fi.Size(), ETag: etagOf(fi), Modified: fi.ModTime()}
}

// statObject returns nil if path holds no object.
func statObject(path string) (fs.FileInfo, error) {
	fi, err := os.Lstat(path)
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("stat object: %w", err)
	case !fi.Mode().IsRegular():
		return nil, nil
	}
	return fi, nil
}

// isAbsent reports errors that say that a path leads nowhere; ENOTDIR is one: the object a makes
// a/b lead nowhere.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// begin is the entry check of every operation on a key.
func begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return objstore.ValidKey(key)
}
