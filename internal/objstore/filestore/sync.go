package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// syncUp syncs the entries of dir and of every folder above it, up to and including top. It syncs
// folders that already existed, too, because their creator may not have synced them yet. It skips
// folders that were removed, because their contents are gone as well. The syncs run concurrently,
// so that the file system can commit them together.
func syncUp(dir, top string) error {
	var g errgroup.Group
	for d := dir; ; d = filepath.Dir(d) {
		g.Go(func() error { return syncDir(d) })
		if d == top || d == filepath.Dir(d) {
			return g.Wait()
		}
	}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
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
}
