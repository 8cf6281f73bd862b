package query

import (
	"context"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/inventory"
	"github.com/promlake/promlake/internal/store/catalog"
)

// describedBlocks is how many blocks Lake reads to describe columns, and how many segments of a
// window to find the first or the last sample: a GET each that is not cached.
const describedBlocks = 64

// Lake describes the objects of the context's tenant at the context's time. With columns, it also
// describes the columns of the blocks that hold most samples, at most 64, and has the times of the
// first and the last sample. A directory has no price.
func (s *Stage) Lake(ctx context.Context, columns bool) (out inventory.Inventory, err error) {
	_, err = s.exec.Snapshots.Range(key.MinTime, key.MaxTime).Read(ctx, func(snap catalog.Snapshot) error {
		out = inventory.Of(snap)
		if s.exec.Files.Local() {
			out.DollarsPerMonth = 0
		}
		if !columns {
			return nil
		}
		first, last, err := s.exec.Files.Span(ctx, snap, describedBlocks)
		if err != nil {
			return err
		}
		if first <= last {
			out.First, out.Last = first, last
		}
		metas, err := s.exec.Files.Metas(ctx, snap, describedBlocks)
		if err == nil {
			out.Columns = inventory.ColumnsOf(metas)
		}
		return err
	})
	return out, err
}
