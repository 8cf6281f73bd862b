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
