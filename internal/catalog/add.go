package catalog

import (
	"fmt"
	"time"
)

// Add makes a block live that replaces nothing: its samples come from outside of the store. Its
// rank identifies what was imported. Tombstones up to b.DeletesThrough do not apply to it. It
// conflicts if
//
//   - a live block of the same rank shares a time of its window and a part of its slice: the same
//     was imported before;
//   - the block is known already, or its job began more than MaxJobAge ago.
func (m Manifest) Add(now time.Time, b Block) (Manifest, error) {
	if err := b.validate(); err != nil {
		return Manifest{}, err
	}
	if twin, ok := m.Imported(b); ok {
		return Manifest{}, fmt.Errorf("add block %s: %s has the same: %w", b.BlockID(), twin.BlockID(), ErrConflict)
	}
	if m.known(b.BlockID()) {
		return Manifest{}, fmt.Errorf("add block %s: it is live, retired or part of a split: %w", b.BlockID(), ErrConflict)
	}
	if err := m.young(now, b.ID); err != nil {
		return Manifest{}, fmt.Errorf("add block %s: %w", b.BlockID(), err)
	}
	if b.DeletesThrough.Compare(m.LastTombstone) > 0 {
		return Manifest{}, fmt.Errorf("add block %s: it has tombstones of the future applied: %w", b.BlockID(), ErrInvalid)
	}
	next := m.clone()
	next.Blocks = append(next.Blocks, b)
	next.sort()
	return next, nil
}

// Imported returns a live block with the same rank as b that shares a time of its window and a part
// of its slice.
func (m Manifest) Imported(b Block) (Block, bool) {
	for _, x := range m.Blocks {
		if x.Rank == b.Rank && int64(x.Window) < b.Level.End(b.Window) && int64(b.Window) < x.Level.End(x.Window) && x.Slice.Shares(b.Slice) {
			return x, true
		}
	}
	return Block{}, false
}
