// Package filestore stores objects as files of a local directory: the object of key a/b/c is the
// file dir/a/b/c.
//
//	dir/<key>           the objects, each published by one rename or link
//	dir/.tmp/<random>   objects being written; leftovers of a crash are removed after an hour
//	dir/.lock/<00–ff>   lock files, shared by keys with the same hash
//	dir/.lock/clock     the store's clock
//
// Any number of processes may use the directory at once; lock files (flock) order their writes.
//
// Times. Put sets a file's modification time by the store's clock, which never returns a time twice
// and never goes back, and publishes the file before the clock advances. So objects appear in the
// order of their modification times, whatever the machine's clock does.
//
// ETags. A file's ETag is its size and its modification time in nanoseconds. So every Put changes
// the ETag, even if an inode number is reused; reading it costs a stat; and it survives a copy of
// the directory that preserves times. A copy that does not preserve times changes the ETags. ETags
// are valid only if nothing but this package writes the files.
//
// On a case-insensitive file system, such as that of macOS, a folder of the first two levels
// (v1/<tenant>) keeps the spelling in which it was created. Keys with another spelling do not
// exist, and a Put under one returns ErrCase.
//
// Limits of a directory: a key cannot also be the folder of other keys (a and a/b; ErrConflict),
// and the file system must support flock, hard links and times in nanoseconds.
package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/store/objstore"
)

// ErrConflict reports a Put under a key that is a folder of other keys, or below a key that is an
// object.
var ErrConflict = errors.New("a directory cannot hold an object and a folder of one name")

const (
	tempDir = ".tmp"
	lockDir = ".lock"
	// tempMaxAge is the age from which a temporary file is a leftover of a crash.
	tempMaxAge = time.Hour

	// Modes of files and folders before the umask: other users have no access, and the group cannot
	// write.
	fileMode = 0o640
	dirMode  = 0o750
)

var (
	_ objstore.Store = (*Store)(nil)
	_ objstore.Local = (*Store)(nil)
)

// folder is an open folder: while it is open, no other one gets its inode.
type folder struct {
	file *os.File
	stat unix.Stat_t
}

// Store is an objstore.Store over a directory. Between calls, it holds some folders open.
type Store struct {
	dir      string // absolute
	root     atomic.Pointer[folder]
	folders  durable
	locks    locks
	clock    *clock
	now      func() time.Time // the machine's clock, which determines the age of temporary files
	spelling *spelling        // nil: the file system is case-sensitive

	preparing sync.Mutex
	prepared  atomic.Bool // the folders of the store's own files exist
}

// New opens the store in dir. It creates the directory if necessary, and removes temporary files
// that are older than an hour. A directory that exists need not be writable, because its file system
// may be full or its reader may have no right to write: each write tries to prepare the directory
// until that succeeds.
func New(dir string) (*Store, error) { return open(dir, time.Now) }

func open(dir string, now func() time.Time) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory store %q: %w", dir, err)
	}
	s := &Store{dir: abs, folders: durable{top: abs}, locks: locks{dir: filepath.Join(abs, lockDir)}, clock: newClock(abs), now: now}
	err = s.prepare()
	if oerr := s.Reopen(); oerr != nil {
		return nil, fmt.Errorf("open directory store %q: %w", dir, cmp.Or(err, oerr))
	}
	folds, err := foldsCase(abs)
	if err != nil {
		return nil, fmt.Errorf("open directory store %q: %w", dir, err)
	}
	if folds {
		s.spelling = newSpelling(abs)
	}
	return s, nil
}

// Same reports whether the store's path leads to the folder that was opened.
func (s *Store) Same() bool {
	var now unix.Stat_t
	was := s.root.Load()
	return unix.Stat(s.dir, &now) == nil && now.Dev == was.stat.Dev && now.Ino == was.stat.Ino
}

// Reopen opens the folder to which the store's path leads now.
func (s *Store) Reopen() error {
	f := new(folder)
	var err error
	if f.file, err = os.Open(s.dir); err != nil {
		return err
	}
	if err := unix.Fstat(int(f.file.Fd()), &f.stat); err != nil {
		return errors.Join(fmt.Errorf("stat the store's folder: %w", err), f.file.Close())
	}
	if f.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return errors.Join(fmt.Errorf("%s is not a directory", s.dir), f.file.Close())
	}
	if was := s.root.Swap(f); was != nil {
		return was.file.Close()
	}
	return nil
}

// prepare makes the folders of the store's own files, once.
func (s *Store) prepare() error {
	if s.prepared.Load() {
		return nil
	}
	s.preparing.Lock()
	defer s.preparing.Unlock()
	top := s.dir // the deepest folder that exists
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
	entries, err := os.ReadDir(filepath.Join(s.dir, tempDir))
	if err != nil {
		return fmt.Errorf("list temporary files: %w", err)
	}
	oldest := s.now().Add(-tempMaxAge)
	for _, e := range entries {
		fi, err := e.Info()
		if err == nil && fi.ModTime().Before(oldest) {
			err = os.Remove(filepath.Join(s.dir, tempDir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove leftover: %w", err)
		}
	}
	s.prepared.Store(true)
	return nil
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

// path returns the path of a valid key's file.
func (s *Store) path(key string) string { return filepath.Join(s.dir, filepath.FromSlash(key)) }

func etagOf(fi fs.FileInfo) string { return etag(fi.Size(), fi.ModTime()) }

// etag returns the entity tag of a file of size bytes.
func etag(size int64, modified time.Time) string {
	b := append(strconv.AppendInt(make([]byte, 0, 33), size, 16), '-')
	return string(strconv.AppendInt(b, modified.UnixNano(), 16))
}

// statObject returns nil if there is no object at path.
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

// isAbsent reports whether err means that a path does not exist. ENOTDIR does, too: it is the error
// for a/b if a is an object.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// begin checks ctx and key at the start of every operation on a key.
func begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return objstore.ValidKey(key)
}
