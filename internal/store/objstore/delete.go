package objstore

import "context"

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
