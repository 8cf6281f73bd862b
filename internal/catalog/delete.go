package catalog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// Delete adds a tombstone for the samples in [mint, maxt] (ms, inclusive) of the series that all matchers match. Its id is newer than
// everything that the manifest knows, so it deletes from all of that, and from every segment that was begun before the clock's now.
func (m Manifest) Delete(now time.Time, matchers []Matcher, mint, maxt int64) (Manifest, Tombstone, error) {
	t := Tombstone{Matchers: slices.Clone(matchers), MinT: mint, MaxT: maxt}
	err := m.admits(t)
	if err != nil {
		return Manifest{}, Tombstone{}, err
	}
	if t.ID, err = m.tombstoneID(now); err != nil {
		return Manifest{}, Tombstone{}, err
	}
	if err := t.validate(); err != nil {
		return Manifest{}, Tombstone{}, err
	}
	next := m.clone()
	next.Tombstones = append(next.Tombstones, t)
	next.LastTombstone = t.ID
	return next, t, nil
}

// tombstoneID returns the id of the next tombstone: a millisecond, eight bytes 0xff, and a number. The bytes put it above every other
// ULID of its millisecond. The number lets many deletions share one: with a millisecond for each, their ids would run ahead of the clock, and
// delete what is written right after them.
func (m Manifest) tombstoneID(now time.Time) (id ulid.ULID, err error) {
	const number = 14 // its first byte
	last := m.LastTombstone.Time()
	ms, n := max(uint64(m.at(now)), last, m.newestRank().Time()), uint16(0)
	if ms == last {
		if n = binary.BigEndian.Uint16(m.LastTombstone[number:]) + 1; n == 0 {
			ms++
		}
	}
	if err := id.SetTime(ms); err != nil {
		return id, fmt.Errorf("delete at %d ms: %w: %w", ms, ErrInvalid, err)
	}
	for i := 6; i < number; i++ {
		id[i] = 0xff
	}
	binary.BigEndian.PutUint16(id[number:], n)
	return id, nil
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
