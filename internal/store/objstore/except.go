package objstore

import (
	"context"
	"iter"
)

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
