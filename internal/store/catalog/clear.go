package catalog

import (
	"time"
)

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
