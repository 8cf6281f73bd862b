package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// durable keeps the folders open to which objects were added last. A folder that is still what its
// path names has not been removed since it was opened, and neither were the folders above it. So
// their entries, once synced, need no sync again: only the folder's own new entry does.
type durable struct {
	top string // the deepest folder that needs no sync

	mu   sync.Mutex
	open []openFolder // those that were opened last are at the end
}

type openFolder struct {
	path string
	file *os.File
}

// keepFolders bounds the open folders: one or two windows of some tenants.
const keepFolders = 16

// sync makes what was added to dir durable.
func (d *durable) sync(dir string) error {
	if f := d.known(dir); f != nil {
		err := f.Sync()
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrClosed) { // it made room for another folder meanwhile
			return fmt.Errorf("sync folder: %w", err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		f = nil // syncUp reports what matters
	}
	if err := syncUp(dir, d.top); err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	if f == nil {
		return nil
	}
	// Keep a folder whose entries up to top were synced since it was opened.
	if !names(dir, f) { // another folder of this name may have been synced
		return f.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	d.open = slices.DeleteFunc(d.open, func(o openFolder) bool {
		if o.path == dir {
			errs = append(errs, o.file.Close())
		}
		return o.path == dir
	})
	if len(d.open) == keepFolders {
		errs = append(errs, d.open[0].file.Close())
		d.open = slices.Delete(d.open, 0, 1)
	}
	d.open = append(d.open, openFolder{dir, f})
	return errors.Join(errs...)
}

// known returns the open folder of a path, or nil.
func (d *durable) known(dir string) *os.File {
	d.mu.Lock()
	i := slices.IndexFunc(d.open, func(o openFolder) bool { return o.path == dir })
	var f *os.File
	if i >= 0 {
		f = d.open[i].file
	}
	d.mu.Unlock()
	if f == nil || !names(dir, f) {
		return nil
	}
	return f
}

// names reports whether a path names an open folder.
func names(dir string, f *os.File) bool {
	now, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	was, err := f.Stat()
	return err == nil && os.SameFile(now, was)
}

// syncUp syncs the entries of dir and of every folder above it, up to and including top. It syncs
// folders that already existed, too, because their creator may not have synced them yet. It skips
// folders that were removed, because their contents are gone as well. The syncs run concurrently,
// so that the file system can commit them together.
func syncUp(dir, top string) error {
	var g errgroup.Group
	for d := dir; ; d = filepath.Dir(d) {
		g.Go(func() error {
			f, err := os.Open(d)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("open folder: %w", err)
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				return fmt.Errorf("sync folder: %w", err)
			}
			return nil
		})
		if d == top || d == filepath.Dir(d) {
			return g.Wait()
		}
	}
}
