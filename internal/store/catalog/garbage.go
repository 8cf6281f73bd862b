package catalog

import (
	"fmt"
	"slices"
	"time"
)

// The life of an object that is no longer live:
//
//	consumed or retired ──Prune──▶ no readable manifest names it
//	     ──delete the object, Forget──▶ gone ──Prune──▶ not in the manifest
//
// Each step waits for the deletion delay, from the store's time of the commit before: the first
// Prune for readers of snapshots in which the object was live; the deletion for readers of history
// that read their manifest just before that Prune; the second Prune for readers that listed the
// object before it was deleted and read the manifest after it was forgotten.

// RetireOrphans retires blocks that no manifest has named, because their jobs died. They can never
// become live afterwards. It ignores blocks that are retired already. It conflicts if a block is
// live or a finished slice, or so young that its job may still be running.
func (m Manifest) RetireOrphans(now time.Time, ids []BlockID) (Manifest, error) {
	next := m.clone()
	for _, id := range ids {
		if slices.ContainsFunc(m.Retired, func(r Retired) bool { return r.BlockID == id }) {
			continue
		}
		if m.known(id) {
			return Manifest{}, fmt.Errorf("retire orphan %s: it is in use: %w", id, ErrConflict)
		}
		if m.young(now, id.ID) == nil {
			return Manifest{}, fmt.Errorf("retire orphan %s: its job began less than %d ms ago: %w", id, MaxJobAge.Milliseconds(), ErrConflict)
		}
		next.Retired = append(next.Retired, m.retire(now, []BlockID{id})...)
	}
	next.sort()
	if id, ok := twins(next.Retired, func(r Retired) BlockID { return r.BlockID }); ok {
		return Manifest{}, fmt.Errorf("retire orphans: %s is there twice: %w", id, ErrInvalid)
	}
	return next, nil
}

// Deletable returns the objects that may be deleted now: consumed or retired at least delay ago,
// not known to be gone, and named as live by no manifest that could be read in that time. m must be
// as it was read from the store, by whose clock now is. After the deletion the caller commits
// Forget.
func (m Manifest) Deletable(now time.Time, delay time.Duration) Sources {
	var s Sources
	due := now.Add(-delay).UnixMilli()
	if m.Oldest.At > due {
		return s
	}
	for _, c := range m.Consumed {
		if c.Gone == 0 && c.At <= due && c.Generation <= m.Oldest.Generation {
			s.Segments = append(s.Segments, c.SegmentID)
		}
	}
	for _, r := range m.Retired {
		if r.Gone == 0 && r.At <= due && r.Generation <= m.Oldest.Generation {
			s.Blocks = append(s.Blocks, r.BlockID)
		}
	}
	return s
}

// Forget records that the objects of consumed segments and retired blocks are deleted. It conflicts
// if one is neither.
func (m Manifest) Forget(segments []SegmentID, blocks []BlockID) (Manifest, error) {
	next := m.clone()
	for _, id := range segments {
		i, ok := slices.BinarySearchFunc(next.Consumed, id, func(c Consumed, id SegmentID) int { return compareSegments(c.SegmentID, id) })
		if !ok {
			return Manifest{}, fmt.Errorf("forget segment %s: it is not consumed: %w", id, ErrConflict)
		}
		if next.Consumed[i].Gone == 0 {
			next.Consumed[i].Gone = m.Generation + 1
		}
	}
	for _, id := range blocks {
		i, ok := slices.BinarySearchFunc(next.Retired, id, func(r Retired, id BlockID) int { return compareBlocks(r.BlockID, id) })
		if !ok {
			return Manifest{}, fmt.Errorf("forget block %s: it is not retired: %w", id, ErrConflict)
		}
		if next.Retired[i].Gone == 0 {
			next.Retired[i].Gone = m.Generation + 1
		}
	}
	return next, nil
}

// forgetAfter is the least time for which the entry of a superseded object is kept. It exceeds the
// time for which a job that has read the object may still commit (the entry makes such a commit
// conflict), and for which a put may still take effect: stores refuse a request that was signed
// more than 15 minutes ago.
const forgetAfter = MaxJobAge + time.Minute

// droppable reports whether pruning the history before oldest drops the entry of an object that was
// superseded at a time (ms) and recorded as gone by a generation; 0 means that it is not recorded.
func droppable(now time.Time, oldest Point, at int64, gone uint64) bool {
	return gone > 0 && gone <= oldest.Generation && at <= now.Add(-forgetAfter).UnixMilli()
}

// Prune ends the readable history before the manifest oldest, and drops the entries of objects that
// were gone in it. now is a time before the caller saw that the dropped segments are not in the
// store.
func (m Manifest) Prune(now time.Time, oldest Point) (Manifest, error) {
	if oldest.Generation > m.Generation || oldest.Generation == m.Generation && oldest.ID != m.ID {
		return Manifest{}, fmt.Errorf("prune history before %s: it is no ancestor of %s: %w", oldest.ID, m.ID, ErrInvalid)
	}
	next := m.clone()
	if oldest.Generation > m.Oldest.Generation {
		next.Oldest = Floor{Point: oldest, At: m.at(now), Raised: m.Generation + 1}
	}
	next.Consumed = slices.DeleteFunc(next.Consumed, func(c Consumed) bool { return droppable(now, oldest, c.At, c.Gone) })
	next.Retired = slices.DeleteFunc(next.Retired, func(r Retired) bool { return droppable(now, oldest, r.At, r.Gone) })
	return next, nil
}

// clearMargin is how much longer than MaxJobAge Vacant waits, for clocks that differ.
const clearMargin = 5 * time.Minute

// Clear consumes these listed segments and retires everything that m names: a snapshot that is
// taken from then on is empty. Jobs in progress on any of it will conflict. Tombstones stay.
func (m Manifest) Clear(now time.Time, segments []SegmentID) Manifest {
	var s Sources
	for _, id := range segments {
		if !m.consumed(id) {
			s.Segments = append(s.Segments, id)
		}
	}
	for _, b := range m.Blocks {
		s.Blocks = append(s.Blocks, b.BlockID())
	}
	for _, sp := range m.Splits {
		for _, b := range sp.Done {
			if !b.empty() {
				s.Blocks = append(s.Blocks, b.BlockID())
			}
		}
	}
	next := m.consume(now, s)
	next.Splits, next.Imports = nil, nil
	return next
}

// Vacant returns the time from which on the manifest of a cleared tenant may be deleted. Until then
// a job that began before could commit, and its sources must be known to be consumed. ok is false
// if the manifest names anything live.
func (m Manifest) Vacant() (from time.Time, ok bool) {
	if len(m.Blocks)+len(m.Splits) > 0 {
		return time.Time{}, false
	}
	var at int64
	for _, c := range m.Consumed {
		at = max(at, c.At)
	}
	for _, r := range m.Retired {
		at = max(at, r.At)
	}
	return time.UnixMilli(at).UTC().Add(MaxJobAge + clearMargin), true
}
