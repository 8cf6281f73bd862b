package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/key"
)

// Tenants returns the tenants that have objects, in ascending order. It costs one listing per tenant.
func Tenants(ctx context.Context, store Lister) ([]string, error) {
	const prefix = key.Version + "/"
	var out []string
	for startAfter := ""; ; {
		name, ok, err := nextElement(ctx, store, prefix, startAfter)
		if err != nil {
			return nil, fmt.Errorf("list tenants: %w", err)
		}
		if !ok {
			slices.Sort(out) // keys sort "a!" before "a", for their next byte is a slash
			return out, nil
		}
		out = append(out, name)
		startAfter = prefix + name + string(rune('/'+1)) // after every key that begins with the name and a slash
	}
}

// nextElement returns what stands between the prefix and the next slash in the first key after startAfter that has one.
func nextElement(ctx context.Context, store Lister, prefix, startAfter string) (string, bool, error) {
	for obj, err := range store.List(ctx, prefix, startAfter) {
		if err != nil {
			return "", false, err
		}
		if name, _, ok := strings.Cut(strings.TrimPrefix(obj.Key, prefix), "/"); ok {
			return name, true, nil
		}
	}
	return "", false, nil
}
