package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// syncUp makes the entries of dir and of every folder above it, up to and including top, durable.
// All of them, because a folder that exists may have been made a moment ago by a writer that has
// not synced it yet. Folders that are gone are skipped: so is then what was in them. The syncs run
// at once, which lets the file system commit them together.
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
