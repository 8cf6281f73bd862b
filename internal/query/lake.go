package query

import (
	"context"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/inventory"
	"github.com/promlake/promlake/internal/store/catalog"
)

// describedBlocks is how many blocks Lake reads to describe columns: a GET each that is not cached.
const describedBlocks = 64

// Lake describes the objects of the context's tenant at the context's time. With columns, it also
// describes the columns of the blocks that hold most samples, at most 64.
func (s *Stage) Lake(ctx context.Context, columns bool) (out inventory.Inventory, err error) {
	_, err = s.exec.Snapshots.Range(key.MinTime, key.MaxTime).Read(ctx, func(snap catalog.Snapshot) error {
		out = inventory.Of(snap)
		if !columns {
			return nil
		}
		metas, err := s.exec.Files.Metas(ctx, snap, describedBlocks)
		if err == nil {
			out.Columns = inventory.ColumnsOf(metas)
		}
		return err
	})
	return out, err
}
