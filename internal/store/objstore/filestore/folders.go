package filestore

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/promlake/promlake/internal/store/objstore"
)

// ListFolders implements objstore.Store. It reads one folder, and its subfolders only until it
// finds an object.
func (s *Store) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.listFolders(ctx, prefix, yield); err != nil {
			yield("", fmt.Errorf("list folders of %q: %w", prefix, err))
		}
	}
}

func (s *Store) listFolders(ctx context.Context, prefix string, yield func(string, error) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if prefix != "" && objstore.ValidKey(strings.TrimSuffix(prefix, "/")) != nil {
		return nil // no key begins with prefix
	}
	if ok, err := s.spelling.right(prefix); !ok || err != nil {
		return err
	}
	w := walk{ctx: ctx, dir: s.dir, prefix: prefix}
	f, items, err := w.open(prefix)
	if len(items) == 0 {
		return err
	}
	defer f.Close() // it is only read
	for _, it := range items {
		if !it.entry.IsDir() {
			continue
		}
		ok, err := hasObject(ctx, filepath.Join(s.dir, filepath.FromSlash(it.key)))
		if err != nil {
			return err
		}
		if ok && !yield(it.key, nil) {
			return nil
		}
	}
	return nil
}

// hasObject reports whether a folder contains a regular file at any depth. A folder without one is
// being created or removed.
func hasObject(ctx context.Context, dir string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return anyEntry(dir, func(e fs.DirEntry) (bool, error) {
		if e.IsDir() {
			return hasObject(ctx, filepath.Join(dir, e.Name()))
		}
		return e.Type().IsRegular(), nil
	})
}

// anyEntry reports whether found is true for an entry of a folder, which may be gone.
func anyEntry(dir string, found func(fs.DirEntry) (bool, error)) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !isAbsent(err) {
		return false, fmt.Errorf("read folder: %w", err)
	}
	for _, e := range entries {
		if ok, err := found(e); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
