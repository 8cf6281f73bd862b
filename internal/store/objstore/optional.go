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

// BatchDeleter is implemented by stores to which many deletions at once cost less than one by one.
type BatchDeleter interface {
	// DeleteAll deletes keys, in their order, as Delete does. It stops at the first error. n is the
	// number of keys, from the first one on, whose deletion is durable; more may be deleted.
	DeleteAll(ctx context.Context, keys []string) (n int, err error)
}

// Wrapper is a store over another one. It passes on what that one does better than most.
type Wrapper interface {
	Store
	ExceptLister
	BatchDeleter
}

// Over returns a store over below: it is a Local exactly if below is one.
func Over(below Store, w Wrapper) Store {
	if l, ok := below.(Local); ok {
		return struct {
			Wrapper
			Local
		}{w, l}
	}
	return w
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
