package objstore

import (
	"context"
	"iter"
	"strings"
)

// FolderLister is implemented by stores that find the folders of one level without listing what is
// in them.
type FolderLister interface {
	// ListFolders yields, in ascending order, the beginnings of keys from prefix up to and
	// including the next slash: for the keys v1/a/x, v1/a/y and v1/b, and the prefix v1/, it yields
	// v1/a/. prefix is "" or ends in a slash. The listing is as strong as List, and stops at the
	// first error, which it yields.
	ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// ListFolders is store.ListFolders if store is a FolderLister. With another store it costs one
// listing for each folder.
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
			// after every key in the folder
			startAfter = strings.TrimSuffix(folder, "/") + string(rune('/'+1))
		}
	}
}

// nextFolder returns the folder of the first key after startAfter that is in one.
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
