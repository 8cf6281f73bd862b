package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// MaxTombstones bounds the tombstones of a manifest. Compaction applies and drops them.
const MaxTombstones = 4096

// Delete adds a tombstone for the samples in [mint, maxt] (ms, inclusive) of the series that all matchers match. Its id is newer than
// everything that the manifest knows, so it deletes from all of that, and from every segment that was begun before the clock's now.
func (m Manifest) Delete(now time.Time, matchers []Matcher, mint, maxt int64) (Manifest, Tombstone, error) {
	t := Tombstone{Matchers: slices.Clone(matchers), MinT: mint, MaxT: maxt}
	if len(m.Tombstones) >= MaxTombstones {
		return Manifest{}, Tombstone{}, fmt.Errorf("delete: the manifest has %d tombstones, which is the limit; retry when compaction has applied some: %w", MaxTombstones, ErrConflict)
	}
	ms := max(m.at(now), int64(m.LastTombstone.Time())+1, int64(m.newestRank().Time()))
	if err := t.ID.SetTime(uint64(ms)); err != nil {
		return Manifest{}, Tombstone{}, fmt.Errorf("delete at %d ms: %w: %w", ms, ErrInvalid, err)
	}
	for i := 6; i < len(t.ID); i++ {
		t.ID[i] = 0xff // above every other ULID of its millisecond
	}
	if err := t.validate(); err != nil {
		return Manifest{}, Tombstone{}, err
	}
	next := m.clone()
	next.Tombstones = append(next.Tombstones, t)
	next.LastTombstone = t.ID
	return next, t, nil
}

// newestRank is the highest rank of all blocks and of all sources that splits claim.
func (m Manifest) newestRank() (rank ulid.ULID) {
	for _, b := range m.Blocks {
		rank = later(rank, b.Rank)
	}
	for _, sp := range m.Splits {
		for _, s := range sp.Sources.Segments {
			rank = later(rank, s.ID)
		}
	}
	return rank
}

// DropTombstones forgets tombstones that have nothing left to delete. Unknown ones are ignored. It conflicts if one still deletes from a live block.
//
// That none deletes from a live segment is for the caller to know, who has listed the segments when all of them with a ULID before the
// tombstone's had settled.
func (m Manifest) DropTombstones(ids []ulid.ULID) (Manifest, error) {
	next := m.clone()
	next.Tombstones = slices.DeleteFunc(next.Tombstones, func(t Tombstone) bool { return slices.Contains(ids, t.ID) })
	for _, t := range m.Tombstones {
		if slices.Contains(ids, t.ID) && m.pending(t) {
			return Manifest{}, fmt.Errorf("drop tombstone %s: a live block has samples that it deletes: %w", t.ID, ErrConflict)
		}
	}
	return next, nil
}

// pending says whether t may delete from a live block, or from the sources of a split. (The finished slices of a split have their
// sources' ranks and times.)
func (m Manifest) pending(t Tombstone) bool {
	for _, b := range m.Blocks {
		if t.AppliesTo(b.Rank, b.DeletesThrough) && t.Overlaps(b.MinT, b.MaxT) {
			return true
		}
	}
	for _, sp := range m.Splits {
		for _, s := range sp.Sources.Segments {
			if t.AppliesTo(s.ID, ulid.ULID{}) && t.Overlaps(int64(s.Window), s.Window.End()-1) {
				return true
			}
		}
	}
	return false
}
