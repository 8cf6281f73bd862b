// Package catalog records which objects hold a tenant's samples at one moment, and is the only way
// to change that.
//
// The snapshot rule: a reader lists the segments first and gets the manifest afterwards. Live are
// the segments that it listed and that the manifest does not count as consumed, and the manifest's
// blocks. A segment that is compacted away between the two steps is then seen as a source of a
// block that is live, and never not at all. A reader that still meets a missing object begins
// again.
//
// Rank: of two samples with equal labels and timestamp, the one in the live object with the higher
// rank counts. A segment's rank is the time at which the store, or the queue before it, got its
// samples; a block's is that of its newest source.
package catalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
)

// SegmentRef is a live segment. Its String method is the object's key.
type SegmentRef struct {
	key.Segment
	Size           int64     // bytes
	ETag           string    // as the store gave it
	Rank           ulid.ULID // decides between equal (series, timestamp)
	DeletesThrough ulid.ULID // the tombstones above it apply; in a Snapshot only
}

// SegmentID returns the segment's identity among those of its tenant.
func (s SegmentRef) SegmentID() SegmentID { return SegmentIDOf(s.Segment) }

// Snapshot is the set of live objects of a tenant that may hold samples of a time range.
type Snapshot struct {
	Tenant     string
	Manifest   Manifest
	Segments   []SegmentRef // ascending by Rank
	Blocks     []Block      // ascending by Rank
	Tombstones []Tombstone  // that delete within the range, ascending by ID
	Skipped    int          // objects under the prefix of the segments whose key the grammar does not derive
}

// Take lists the segments of tenant in the 2h windows that overlap [mint, maxt] (ms since the Unix
// epoch, inclusive), and then reads the manifest. Timestamps outside of what keys can name are
// clipped; an empty range gives an empty snapshot.
//
// The listing is as old as the call. A planner concludes from the age of a segment that no older
// one is missing. It must have read the store's time before the call.
func Take(ctx context.Context, store Reader, tenant string, mint, maxt int64) (Snapshot, error) {
	l, err := List(ctx, store, tenant, mint, maxt)
	if err != nil || l.mint > l.maxt {
		return l.snap, err
	}
	m, _, err := ReadManifest(ctx, store, tenant)
	if err != nil {
		return Snapshot{}, err
	}
	return l.With(m), nil
}

// apply removes the consumed segments and adds what m has for [mint, maxt].
func (s *Snapshot) apply(m Manifest, mint, maxt int64) {
	s.Manifest = m
	s.Segments = slices.DeleteFunc(s.Segments, func(r SegmentRef) bool { return m.consumed(r.SegmentID()) })
	for i := range s.Segments {
		s.Segments[i].DeletesThrough = m.deletesThrough(s.Segments[i].SegmentID())
	}
	for _, block := range m.Blocks {
		if block.overlaps(mint, maxt) {
			s.Blocks = append(s.Blocks, block)
		}
	}
	for _, t := range m.Tombstones {
		if t.Overlaps(mint, maxt) {
			s.Tombstones = append(s.Tombstones, t)
		}
	}
	slices.SortFunc(s.Blocks, func(a, b Block) int {
		return cmp.Or(a.Rank.Compare(b.Rank), compareBlocks(a.BlockID(), b.BlockID()))
	})
}

// consumes reports whether k is the key of a consumed segment of the manifest's tenant, under whose
// prefix it is.
func (m *Manifest) consumes(k string) bool {
	seg, err := key.ParseSegment(k)
	return err == nil && m.consumed(SegmentIDOf(seg))
}

func (m *Manifest) consumed(id SegmentID) bool {
	_, ok := slices.BinarySearchFunc(m.Consumed, id, func(c Consumed, id SegmentID) int { return compareSegments(c.SegmentID, id) })
	return ok
}
