package source

import (
	"cmp"
	"context"
	"slices"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Metas returns the meta.json of the blocks of a snapshot that hold most samples, at most n of
// them. Callers must not change them. Errors are those of footers.
func (f *Files) Metas(ctx context.Context, snap catalog.Snapshot, n int) ([]*block.Meta, error) {
	snap.Segments, snap.Blocks = nil, slices.Clone(snap.Blocks)
	slices.SortStableFunc(snap.Blocks, func(a, b catalog.Block) int { return cmp.Compare(b.Samples, a.Samples) })
	snap.Blocks = snap.Blocks[:min(n, len(snap.Blocks))]
	objs, err := f.locate(ctx, Refs(snap))
	if err != nil {
		return nil, err
	}
	out := make([]*block.Meta, len(objs))
	for i := range objs {
		out[i] = objs[i].Footer.Meta
	}
	return out, nil
}
