package catalog

import (
	"slices"
	"time"
)

// Replica returns m as the manifest of a copy of its store that has the manifest former, which may
// be m itself. live are the live segments of the copy. hidden are the other objects that it has:
// the result counts them as consumed or retired, whatever m says, so that they are not live and
// garbage collection finds them. now is a time of the copy's clock.
//
// At of an entry is the time at which the copy superseded the object. If it is delay ago and the
// object is there, At becomes now, and the caller deletes the object after the commit. Entries of
// segments that m no longer has stay until twice delay after At, for the sake of readers that
// listed the segment before it was deleted.
func (m Manifest) Replica(former Manifest, now time.Time, delay time.Duration, live []SegmentID, hidden Sources) Manifest {
	next, there, current := m.clone(), indexSources(hidden), indexSources(Sources{Segments: live})
	due := now.Add(-delay).UnixMilli()
	for _, c := range former.Consumed {
		if c.At > now.Add(-2*delay).UnixMilli() && !m.consumed(c.SegmentID) && !there.segments[c.SegmentID] && !current.segments[c.SegmentID] {
			next.Consumed = append(next.Consumed, c)
		}
	}
	for _, id := range hidden.Segments {
		if !m.consumed(id) {
			next.Consumed = append(next.Consumed, Consumed{SegmentID: id, Generation: m.Generation})
		}
	}
	for _, id := range hidden.Blocks {
		if _, ok := m.RetiredAt(id); !ok {
			next.Retired = append(next.Retired, Retired{BlockID: id, Generation: m.Generation})
		}
	}
	// since is At of an entry: that of the former manifest, unless the object is deleted now.
	since := func(former int64, known, there bool, at int64) int64 {
		if known && !(there && former <= due) {
			return former
		}
		return max(at, now.UnixMilli())
	}
	for i, c := range next.Consumed {
		at, known := former.ConsumedAt(c.SegmentID)
		next.Consumed[i].At = since(at, known, there.segments[c.SegmentID], c.At)
		if there.segments[c.SegmentID] {
			next.Consumed[i].Gone = 0
		}
	}
	for i, r := range next.Retired {
		at, known := former.RetiredAt(r.BlockID)
		next.Retired[i].At = since(at, known, there.blocks[r.BlockID], r.At)
		if there.blocks[r.BlockID] {
			next.Retired[i].Gone = 0
		}
	}
	next.sort()
	return next
}

// ConsumedAt returns the time (ms) since which m counts a segment as consumed, if it does.
func (m Manifest) ConsumedAt(id SegmentID) (int64, bool) {
	i, ok := slices.BinarySearchFunc(m.Consumed, id, func(c Consumed, id SegmentID) int { return compareSegments(c.SegmentID, id) })
	if !ok {
		return 0, false
	}
	return m.Consumed[i].At, true
}

// RetiredAt returns the time (ms) since which m counts a block as retired, if it does.
func (m Manifest) RetiredAt(id BlockID) (int64, bool) {
	i, ok := slices.BinarySearchFunc(m.Retired, id, func(r Retired, id BlockID) int { return compareBlocks(r.BlockID, id) })
	if !ok {
		return 0, false
	}
	return m.Retired[i].At, true
}
