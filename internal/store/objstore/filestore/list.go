package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/store/objstore"
)

// List implements objstore.Store. It reads one folder at a time, when the iteration gets there.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return s.ListExcept(ctx, prefix, startAfter, nil)
}

// ListExcept implements objstore.ExceptLister. A file that is skipped costs no system call. skip may
// be nil.
func (s *Store) ListExcept(ctx context.Context, prefix, startAfter string, skip func(key string) bool) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		folder := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if folder != "" && objstore.ValidKey(strings.TrimSuffix(folder, "/")) != nil {
			folder = "" // no key begins with prefix; the walk finds nothing but checks ctx
		}
		if ok, err := s.spelling.right(folder); err != nil {
			yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		} else if !ok {
			return
		}
		w := walk{ctx: ctx, dir: s.dir, prefix: prefix, startAfter: startAfter, skip: skip, yield: yield}
		w.folder(folder)
	}
}

type walk struct {
	ctx                context.Context
	dir                string
	prefix, startAfter string
	skip               func(key string) bool // nil: nothing
	yield              func(objstore.Object, error) bool
}

// item is an entry of a folder, with its place in the order of keys: the key of an object, or the
// prefix of a folder's keys. The trailing slash sorts a-b/x before a/x.
type item struct {
	key   string
	entry fs.DirEntry
}

// folder yields the objects whose keys begin with at ("" or ending with a slash). It returns false
// if the listing must stop.
func (w *walk) folder(at string) bool {
	f, items, err := w.open(at)
	if err != nil {
		return w.fail(err)
	}
	if len(items) == 0 {
		return true
	}
	defer f.Close() // it is only read
	dir := int(f.Fd())
	for _, it := range items {
		if err := w.ctx.Err(); err != nil {
			return w.fail(err)
		}
		goOn := true
		if it.entry.IsDir() {
			goOn = w.folder(it.key)
		} else {
			goOn = w.object(dir, it)
		}
		if !goOn {
			return false
		}
	}
	return true
}

// object yields an object of the open folder dir. entry.Info would allocate the path of each file,
// and all that the system knows of it: rules list the segments before each of their groups.
func (w *walk) object(dir int, it item) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, it.entry.Name(), &st, unix.AT_SYMLINK_NOFOLLOW)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(dir, it.entry.Name(), &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
		return true
	case err != nil:
		return w.fail(fmt.Errorf("stat object %s: %w", it.key, err))
	}
	modified := time.Unix(st.Mtim.Unix())
	return w.yield(objstore.Object{Key: it.key, Size: st.Size, ETag: etag(st.Size, modified), Modified: modified}, nil)
}

// open reads the folder with the prefix at and returns the entries that may contain wanted keys, in
// order of keys. It leaves the folder open if there are any.
func (w *walk) open(at string) (f *os.File, items []item, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, nil, err
	}
	f, err = os.Open(filepath.Join(w.dir, filepath.FromSlash(at)))
	if isAbsent(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open folder: %w", err)
	}
	defer func() {
		if len(items) == 0 {
			err = errors.Join(err, f.Close())
		}
	}()
	entries, err := f.ReadDir(-1)
	if err != nil && !isAbsent(err) {
		return nil, nil, fmt.Errorf("read folder: %w", err)
	}
	for _, e := range entries {
		it := item{key: at + e.Name(), entry: e}
		if e.IsDir() {
			it.key += "/"
		}
		if it.key[0] != '.' && w.wants(it) {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	return f, items, nil
}

// wants reports whether an object is to be listed, or a folder may contain one.
func (w *walk) wants(it item) bool {
	if it.entry.IsDir() {
		return (strings.HasPrefix(it.key, w.prefix) || strings.HasPrefix(w.prefix, it.key)) &&
			(w.startAfter < it.key || strings.HasPrefix(w.startAfter, it.key))
	}
	return it.entry.Type().IsRegular() && strings.HasPrefix(it.key, w.prefix) && it.key > w.startAfter && (w.skip == nil || !w.skip(it.key))
}

func (w *walk) fail(err error) bool {
	w.yield(objstore.Object{}, fmt.Errorf("list %q: %w", w.prefix, err))
	return false
}
