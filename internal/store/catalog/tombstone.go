package catalog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
)

// Tombstone deletes the samples of the matching series with timestamps in [MinT, MaxT] from every
// object that it covers:
//
//   - the blocks that were live when it was committed;
//   - the segments that the deletion listed in its windows, which the manifest has as Sealed;
//   - segments of the write queue, whenever they appear, whose messages were sent until
//     QueuedThrough.
//
// No clock of a machine has a part in that. Tombstones are committed one after another, and each
// one covers what the one before it covers. So an object is covered by all tombstones above some
// identifier, which is its DeletesThrough.
type Tombstone struct {
	ID       ulid.ULID `json:"id"`       // larger than that of every tombstone before it
	Matchers []Matcher `json:"matchers"` // at least one; all must match
	MinT     int64     `json:"min_t"`    // ms
	MaxT     int64     `json:"max_t"`    // ms, inclusive
	// QueuedThrough is the end of a period of the write queue, ms by the queue's clock. 0 if the
	// store has no queue before it.
	QueuedThrough int64 `json:"queued_through,omitempty"`
	// Before covers all segments with a smaller identifier, if it is not zero. Only tombstones of
	// manifests of version 1 have it.
	Before ulid.ULID `json:"before,omitzero"`
}

// Matcher is a label matcher with upstream's meaning: a label that is absent is empty, regular
// expressions are anchored.
type Matcher struct {
	Type  string `json:"type"` // =, !=, =~ or !~
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Covers reports whether t deletes from an object with this DeletesThrough (of a Block or a
// SegmentRef).
func (t Tombstone) Covers(deletesThrough ulid.ULID) bool { return t.ID.Compare(deletesThrough) > 0 }

// Overlaps reports whether t deletes anything in [mint, maxt] (ms, inclusive).
func (t Tombstone) Overlaps(mint, maxt int64) bool { return t.MinT <= maxt && t.MaxT >= mint }

// LabelMatchers compiles the matchers. Those of a manifest always compile.
func (t Tombstone) LabelMatchers() ([]*labels.Matcher, error) {
	out := make([]*labels.Matcher, 0, len(t.Matchers))
	for _, m := range t.Matchers {
		c, err := m.compile()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// MatchersOf converts upstream's matchers.
func MatchersOf(ms []*labels.Matcher) []Matcher {
	out := make([]Matcher, 0, len(ms))
	for _, m := range ms {
		out = append(out, Matcher{Type: m.Type.String(), Name: m.Name, Value: m.Value})
	}
	return out
}

func (m Matcher) compile() (*labels.Matcher, error) {
	for _, t := range []labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp} {
		if t.String() != m.Type {
			continue
		}
		c, err := labels.NewMatcher(t, m.Name, m.Value)
		if err != nil {
			return nil, fmt.Errorf("compile matcher %s%s%q: %w: %w", m.Name, m.Type, m.Value, ErrInvalid, err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("compile matcher of type %q: %w", m.Type, ErrInvalid)
}

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

// Limits of deletions. Every query reads all tombstones and compares their matchers with the series
// that it finds, so what they may hold is bounded.
const (
	// MaxTombstones bounds the tombstones of a manifest. Compaction applies and drops them.
	MaxTombstones = 4096
	// MaxMatcherBytes bounds the names and values of the matchers of one tombstone.
	MaxMatcherBytes = 64 << 10
	// MaxTombstoneBytes bounds the names and values of the matchers of all tombstones of a
	// manifest.
	MaxTombstoneBytes = 1 << 20
	// MaxSealed bounds the segments that a manifest has as sealed. Compaction takes them away.
	MaxSealed = 1 << 16
)

// ErrFull: the manifest has no room for another tombstone. Compaction makes some by applying those
// that are there.
var ErrFull = errors.New("no room for another deletion until compaction has applied earlier ones")

// LimitError is a deletion that exceeds a limit. It wraps ErrInvalid if no manifest could take the
// deletion, and ErrFull if this one cannot take it now.
type LimitError struct {
	Limit    string // "tombstones", "tombstone_bytes", "matcher_bytes" or "sealed"
	Got, Max int
	cause    error
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("delete: %d %s, the limit is %d: %v", e.Got, limitNouns[e.Limit], e.Max, e.cause)
}

// Unwrap returns ErrInvalid or ErrFull.
func (e *LimitError) Unwrap() error { return e.cause }

var limitNouns = map[string]string{
	"tombstones":      "deletions in the manifest",
	"tombstone_bytes": "bytes of matchers in the manifest's deletions",
	"matcher_bytes":   "bytes of matchers in one deletion",
	"sealed":          "segments that wait for compaction and for a deletion",
}

// admits checks that the manifest has room for t. Limits do not concern the tombstones that a
// manifest already has: one from before the limits stays readable.
func (m Manifest) admits(t Tombstone) error {
	size := t.matcherBytes()
	if size > MaxMatcherBytes {
		return &LimitError{"matcher_bytes", size, MaxMatcherBytes, ErrInvalid}
	}
	if n := len(m.Tombstones) + 1; n > MaxTombstones {
		return &LimitError{"tombstones", n, MaxTombstones, ErrFull}
	}
	for _, other := range m.Tombstones {
		size += other.matcherBytes()
	}
	if size > MaxTombstoneBytes {
		return &LimitError{"tombstone_bytes", size, MaxTombstoneBytes, ErrFull}
	}
	return nil
}

// matcherBytes is the size of the names and values of t's matchers.
func (t Tombstone) matcherBytes() (n int) {
	for _, m := range t.Matchers {
		n += len(m.Name) + len(m.Value)
	}
	return n
}
