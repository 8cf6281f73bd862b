// Package catalog says which objects hold a tenant's samples at one moment.
//
// The snapshot rule: a reader lists the segments first and whatever supersedes them afterwards. An object that is
// compacted away between the two steps is then seen twice, as a segment and as its successor's source, and never not at all.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
)

// Lister is the part of objstore.Store that a snapshot needs. The listing must be strong: it shows every object whose
// Put returned before it began.
type Lister interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error]
}

// SegmentRef is a live segment. Its String method is the object's key.
type SegmentRef struct {
	key.Segment
	Size int64  // bytes
	ETag string // as the store gave it
}

// Snapshot is the set of live objects of a tenant that may hold samples of a time range.
type Snapshot struct {
	Tenant   string
	Segments []SegmentRef // ascending by ID: oldest writer first, so that of two equal timestamps the later one wins
	Skipped  int          // objects under the prefix whose key the grammar does not derive
}

// Take lists the segments of tenant in the 2h windows that overlap [mint, maxt] (ms since the Unix epoch, inclusive).
// Timestamps outside of what keys can name are clipped; an empty range gives an empty snapshot.
func Take(ctx context.Context, store Lister, tenant string, mint, maxt int64) (Snapshot, error) {
	snap := Snapshot{Tenant: tenant}
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt {
		return snap, nil
	}
	prefix := key.SegmentsPrefix(tenant)
	first, last := key.WindowOf(mint), key.WindowOf(maxt)
	// Every key of the first window sorts after the window's name without its slash, and every key of an earlier one before it.
	for obj, err := range store.List(ctx, prefix, prefix+first.String()) {
		if err != nil {
			return Snapshot{}, fmt.Errorf("list segments of tenant %s: %w", tenant, err)
		}
		if last.End() <= key.MaxTime && obj.Key >= prefix+key.Window(last.End()).String() {
			break
		}
		seg, err := key.ParseSegment(obj.Key)
		if err != nil {
			snap.Skipped++
			continue
		}
		snap.Segments = append(snap.Segments, SegmentRef{Segment: seg, Size: obj.Size, ETag: obj.ETag})
	}
	slices.SortFunc(snap.Segments, func(a, b SegmentRef) int {
		if c := a.ID.Compare(b.ID); c != 0 {
			return c
		}
		return cmp.Compare(a.Window, b.Window)
	})
	return snap, nil
}
