package source

import (
	"cmp"
	"context"
	"math"
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

// Span returns the times (ms) of the first and the last sample of a snapshot; last is below first
// if there is none. The manifest has the times of blocks. Of segments it reads footers: those of
// the n oldest in the first window, and of the n newest in the last window. It fails if a footer
// cannot be read.
func (f *Files) Span(ctx context.Context, snap catalog.Snapshot, n int) (first, last int64, err error) {
	first, last = math.MaxInt64, math.MinInt64
	see := func(mint, maxt int64) {
		if mint <= maxt {
			first, last = min(first, mint), max(last, maxt)
		}
	}
	for _, b := range snap.Blocks {
		see(b.MinT, b.MaxT)
	}
	byWindow := slices.Clone(snap.Segments)
	slices.SortStableFunc(byWindow, func(a, b catalog.SegmentRef) int { return cmp.Compare(a.Window, b.Window) })
	snap.Segments, snap.Blocks = nil, nil
	for i, s := range byWindow {
		ofFirst := s.Window == byWindow[0].Window && i < n
		ofLast := s.Window == byWindow[len(byWindow)-1].Window && i >= len(byWindow)-n
		if ofFirst || ofLast {
			snap.Segments = append(snap.Segments, s)
		}
	}
	objs, err := f.locate(ctx, Refs(snap))
	for _, o := range objs {
		if err == nil {
			see(o.Footer.MinT, o.Footer.MaxT)
		}
	}
	return first, last, err
}
