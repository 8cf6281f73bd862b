package remote

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Names maps keys to the names of objects in a bucket. It is their common prefix: "" or ending with
// a slash.
type Names string

// Begin checks ctx and key at the start of every operation on a key.
func (n Names) Begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := objstore.ValidKey(key); err != nil {
		return err
	}
	if l := len(n) + len(key); l > objstore.MaxKeyLen {
		return fmt.Errorf("%w: with the store's prefix it has %d bytes, the limit is %d", objstore.ErrInvalidKey, l, objstore.MaxKeyLen)
	}
	return nil
}

// Name returns the name of a key's object.
func (n Names) Name(key string) string { return string(n) + key }

// key removes the prefix from a listed name. Names that are no valid keys, such as the folder
// markers of consoles, are skipped.
func (n Names) key(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, string(n))
	return key, ok && objstore.ValidKey(key) == nil
}

// Page is a part of a listing, in the order of names.
type Page struct {
	Objects []objstore.Object // their keys are names
	Folders []string          // names that end with a slash
	Last    bool
}

// Pages requests the pages of a listing one after the other.
type Pages func() (Page, error)

// List yields what objstore.Store.List promises of the pages, which may have more objects.
func (n Names) List(ctx context.Context, prefix, startAfter string, pages Pages) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		last := startAfter
		for o, err := range elements(ctx, pages, func(p Page) []objstore.Object { return p.Objects }) {
			key, ok := n.key(o.Key)
			switch {
			case err != nil:
			case !ok || !strings.HasPrefix(key, prefix) || key <= startAfter:
				continue
			case key <= last:
				err = unordered(key, last)
			}
			if err != nil {
				yield(objstore.Object{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			last, o.Key = key, key
			if !yield(o, nil) {
				return
			}
		}
	}
}

// ListFolders yields what objstore.FolderLister promises of the pages. A folder that contains only
// the marker object of a console is listed, too.
func (n Names) ListFolders(ctx context.Context, prefix string, pages Pages) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for name, err := range elements(ctx, pages, func(p Page) []string { return p.Folders }) {
			key, ok := n.key(strings.TrimSuffix(name, "/"))
			folder := key + "/"
			switch {
			case err != nil:
			case !ok || !strings.HasPrefix(folder, prefix):
				continue
			case folder <= last:
				err = unordered(folder, last)
			}
			if err != nil {
				yield("", fmt.Errorf("list folders of %q: %w", prefix, err))
				return
			}
			if last = folder; !yield(folder, nil) {
				return
			}
		}
	}
}

func unordered(name, last string) error {
	return fmt.Errorf("the bucket lists %q after %q, not in the order of bytes", name, last)
}

// elements yields one kind of the elements of all pages, and the first error.
func elements[T any](ctx context.Context, pages Pages, of func(Page) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for {
			err := ctx.Err()
			var page Page
			if err == nil {
				page, err = pages()
			}
			if err != nil {
				yield(none, Contextual(ctx, err))
				return
			}
			for _, e := range of(page) {
				if !yield(e, nil) {
					return
				}
			}
			if page.Last {
				return
			}
		}
	}
}

// Representable returns the longest prefix of v without control characters and invalid UTF-8, which
// no key contains and which may not survive encoding in URL and XML.
func Representable(v string) string {
	for i, r := range v {
		_, size := utf8.DecodeRuneInString(v[i:])
		if r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff || r == utf8.RuneError && size == 1 {
			return v[:i]
		}
	}
	return v
}
