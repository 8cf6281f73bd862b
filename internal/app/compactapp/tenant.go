package compactapp

import (
	"context"
	"iter"
	"strings"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// view is a store in which one tenant's objects are all that is listed.
type view struct {
	objstore.Store
	prefix string // of the tenant's keys
}

// only returns a view of store that lists no objects but the tenant's. It is an objstore.Local
// exactly if store is one.
func only(store objstore.Store, tenant string) objstore.Store {
	v := view{Store: store, prefix: key.TenantPrefix(tenant)}
	if l, ok := store.(objstore.Local); ok {
		return struct {
			view
			objstore.Local
		}{v, l}
	}
	return v
}

// List implements objstore.Store.
func (v view) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	switch {
	case strings.HasPrefix(prefix, v.prefix):
		return v.Store.List(ctx, prefix, startAfter)
	case strings.HasPrefix(v.prefix, prefix):
		return v.Store.List(ctx, v.prefix, startAfter)
	default:
		return func(func(objstore.Object, error) bool) {}
	}
}

// DeleteAll implements objstore.BatchDeleter.
func (v view) DeleteAll(ctx context.Context, keys []string) (int, error) {
	return objstore.DeleteAll(ctx, v.Store, keys)
}
