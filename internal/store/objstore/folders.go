package objstore

import (
	"context"
	"iter"
	"strings"
)

// FolderLister is implemented by stores that can list the folders of one level without listing
// their contents.
type FolderLister interface {
	// ListFolders yields, in ascending order, the folders directly below prefix: for the keys
	// v1/a/x, v1/a/y and v1/b, and the prefix v1/, it yields v1/a/. prefix is "" or ends with a
	// slash. The listing is as strongly consistent as List. It stops at the first error, which it
	// yields.
	ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// ListFolders returns store.ListFolders if store is a FolderLister. For other stores it costs one
// listing per folder.
func ListFolders(ctx context.Context, store Lister, prefix string) iter.Seq2[string, error] {
	if f, ok := store.(FolderLister); ok {
		return f.ListFolders(ctx, prefix)
	}
	return func(yield func(string, error) bool) {
		for startAfter := ""; ; {
			folder, ok, err := nextFolder(ctx, store, prefix, startAfter)
			if err != nil {
				yield("", err)
				return
			}
			if !ok || !yield(folder, nil) {
				return
			}
			// this sorts after every key in the folder
			startAfter = strings.TrimSuffix(folder, "/") + string(rune('/'+1))
		}
	}
}

// nextFolder returns the folder of the first key after startAfter that is in a folder.
func nextFolder(ctx context.Context, store Lister, prefix, startAfter string) (string, bool, error) {
	for obj, err := range store.List(ctx, prefix, startAfter) {
		if err != nil {
			return "", false, err
		}
		if name, _, ok := strings.Cut(strings.TrimPrefix(obj.Key, prefix), "/"); ok {
			return prefix + name + "/", true, nil
		}
	}
	return "", false, nil
}

// ExceptLister is implemented by stores that pay for every object that they list.
type ExceptLister interface {
	// ListExcept is List without the objects whose keys skip holds.
	ListExcept(ctx context.Context, prefix, startAfter string, skip func(key string) bool) iter.Seq2[Object, error]
}

// ListExcept returns store.ListExcept if store is an ExceptLister. Of other stores it leaves out
// what they list.
func ListExcept(ctx context.Context, store Lister, prefix, startAfter string, skip func(key string) bool) iter.Seq2[Object, error] {
	if l, ok := store.(ExceptLister); ok {
		return l.ListExcept(ctx, prefix, startAfter, skip)
	}
	return func(yield func(Object, error) bool) {
		for obj, err := range store.List(ctx, prefix, startAfter) {
			if err == nil && skip(obj.Key) {
				continue
			}
			if !yield(obj, err) {
				return
			}
		}
	}
}

// BatchDeleter is implemented by stores to which many deletions at once cost less than one by one.
type BatchDeleter interface {
	// DeleteAll deletes keys, in their order, as Delete does. It stops at the first error. n is the
	// number of keys, from the first one on, whose deletion is durable; more may be deleted.
	DeleteAll(ctx context.Context, keys []string) (n int, err error)
}

// DeleteAll returns store.DeleteAll if store is a BatchDeleter. Of other stores it deletes one key
// after the other.
func DeleteAll(ctx context.Context, store Store, keys []string) (n int, err error) {
	if b, ok := store.(BatchDeleter); ok {
		return b.DeleteAll(ctx, keys)
	}
	for _, k := range keys {
		if err := store.Delete(ctx, k); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
