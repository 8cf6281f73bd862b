package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Tenants returns the tenants that have objects, in ascending order. With a store that is an
// objstore.FolderLister it costs one listing of the tenants' folders, with others one listing per
// tenant.
func Tenants(ctx context.Context, store Lister) ([]string, error) {
	const prefix = key.Version + "/"
	var out []string
	for folder, err := range objstore.ListFolders(ctx, store, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list tenants: %w", err)
		}
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(folder, prefix), "/"))
	}
	slices.Sort(out) // folders sort "a!/" before "a/", for they end in a slash
	return out, nil
}
