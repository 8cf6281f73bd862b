package catalog

import (
	"fmt"

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
