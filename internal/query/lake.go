package query

import (
	"context"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/inventory"
)

// Lake describes the objects of the context's tenant at the context's time.
func (s *Stage) Lake(ctx context.Context) (out inventory.Inventory, err error) {
	_, err = s.exec.Snapshots.Range(key.MinTime, key.MaxTime).Read(ctx, func(snap catalog.Snapshot) error {
		out = inventory.Of(snap)
		return nil
	})
	return out, err
}
