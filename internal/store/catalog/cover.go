package catalog

import (
	"slices"

	"github.com/oklog/ulid/v2"
)

// untouchable is the DeletesThrough of an object that no tombstone covers.
var untouchable = ulid.ULID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

// deletesThrough returns the identifier above which all tombstones of m cover the segment.
func (m Manifest) deletesThrough(s SegmentID) ulid.ULID {
	first := untouchable
	if i, ok := m.sealed(s); ok {
		first = m.Sealed[i].By
	}
	if i := m.covering(s); i < len(m.Tombstones) && m.Tombstones[i].ID.Compare(first) < 0 {
		first = m.Tombstones[i].ID
	}
	if first == untouchable {
		return untouchable
	}
	return predecessor(first)
}

// covering returns the place of the first tombstone that covers the segment although it is not
// sealed.
func (m Manifest) covering(s SegmentID) int {
	if s.Queued {
		// QueuedThrough ascends. The time of ID is when the queue got the newest message, ms.
		i, _ := slices.BinarySearchFunc(m.Tombstones, int64(s.ID.Time()), func(t Tombstone, sent int64) int {
			if t.QueuedThrough < sent {
				return -1
			}
			return 1
		})
		return i
	}
	for i, t := range m.Tombstones {
		if t.Before == (ulid.ULID{}) { // those of version 1 come first
			break
		}
		if s.ID.Compare(t.Before) < 0 {
			return i
		}
	}
	return len(m.Tombstones)
}

func (m Manifest) sealed(s SegmentID) (int, bool) {
	return slices.BinarySearchFunc(m.Sealed, s, func(x Sealed, s SegmentID) int { return compareSegments(x.SegmentID, s) })
}

// predecessor returns the largest identifier below id, which is not zero.
func predecessor(id ulid.ULID) ulid.ULID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 255 {
			break
		}
	}
	return id
}
