package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ErrCase reports a Put under a key of which a folder exists in another upper and lower case
// spelling, on a case-insensitive file system: two tenants would share a folder.
var ErrCase = errors.New("the file system is case-insensitive, and the folder exists in another spelling")

// casedFolders is the number of a key's folders whose spelling is checked: v1/<tenant>. The key
// grammar allows only one spelling of the folders below.
const casedFolders = 2

// foldsCase reports whether the file system of a store is case-insensitive, by a folder that exists
// unless the store is empty. Nothing else has its name in upper case.
func foldsCase(dir string) (bool, error) {
	for _, name := range []string{tempDir, "v1"} {
		_, err := os.Lstat(filepath.Join(dir, strings.ToUpper(name)))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// spelling checks the spelling of folders on a case-insensitive file system. A nil spelling allows
// everything.
type spelling struct {
	dir string

	mu    sync.Mutex
	known map[string]fs.FileInfo // by folder; seen on disk in this spelling
}

func newSpelling(dir string) *spelling { return &spelling{dir: dir, known: map[string]fs.FileInfo{}} }

// right reports whether every folder of key, up to casedFolders, has this spelling on disk or does
// not exist.
func (s *spelling) right(key string) (bool, error) {
	if s == nil {
		return true, nil
	}
	parts := strings.Split(key, "/")
	parent := s.dir
	for _, name := range parts[:min(len(parts)-1, casedFolders)] {
		ok, err := s.entry(parent, name)
		if !ok || err != nil {
			return ok, err
		}
		parent = filepath.Join(parent, name)
	}
	return true, nil
}

// claim creates the folders of key up to casedFolders, and returns ErrCase unless they exist in
// key's spelling. If two callers claim two spellings concurrently, one of them created the folder.
func (s *spelling) claim(key string) error {
	if s == nil {
		return nil
	}
	parts := strings.Split(key, "/")
	folders := filepath.Join(parts[:min(len(parts)-1, casedFolders)]...)
	if err := os.MkdirAll(filepath.Join(s.dir, folders), dirMode); err != nil && !errors.Is(err, fs.ErrExist) && !isAbsent(err) {
		return fmt.Errorf("create folder: %w", err)
	}
	ok, err := s.right(key)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", folders, ErrCase)
	}
	return err
}

// entry reports whether the folder name in parent has this spelling on disk or does not exist.
func (s *spelling) entry(parent, name string) (bool, error) {
	path := filepath.Join(parent, name)
	fi, err := os.Lstat(path)
	if err != nil && !isAbsent(err) {
		return false, fmt.Errorf("stat folder: %w", err)
	}
	s.mu.Lock()
	known, ok := s.known[path]
	s.mu.Unlock()
	if ok && fi != nil && os.SameFile(known, fi) {
		return true, nil
	}
	found, err := anyEntry(parent, func(e fs.DirEntry) (bool, error) { return e.Name() != name && strings.EqualFold(e.Name(), name), nil })
	if err != nil || found {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.known, path); fi != nil {
		s.known[path] = fi
	}
	return true, nil
}
