package catalog

import (
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
)

// Tombstone deletes the samples of the matching series with timestamps in [MinT, MaxT] from everything that was written before it.
type Tombstone struct {
	ID       ulid.ULID `json:"id"`
	Matchers []Matcher `json:"matchers"` // at least one; all must match
	MinT     int64     `json:"min_t"`    // ms
	MaxT     int64     `json:"max_t"`    // ms, inclusive
}

// Matcher is a label matcher with upstream's meaning: a label that is absent is empty, regular expressions are anchored.
type Matcher struct {
	Type  string `json:"type"` // =, !=, =~ or !~
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AppliesTo says whether t deletes from a source with this rank to which the tombstones up to deletesThrough have been applied (a
// segment has been given none: the zero ULID).
func (t Tombstone) AppliesTo(rank, deletesThrough ulid.ULID) bool {
	return rank.Compare(t.ID) < 0 && t.ID.Compare(deletesThrough) > 0
}

// Overlaps says whether t deletes anything in [mint, maxt] (ms, inclusive).
func (t Tombstone) Overlaps(mint, maxt int64) bool { return t.MinT <= maxt && t.MaxT >= mint }

// Covers says whether t deletes the timestamp ts (ms) of a series that it matches.
func (t Tombstone) Covers(ts int64) bool { return t.MinT <= ts && ts <= t.MaxT }

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

// Matches says whether t deletes from the series with these labels. It compiles the matchers, so who asks often uses LabelMatchers.
// It panics if a matcher is invalid, as none in a manifest is.
func (t Tombstone) Matches(lset labels.Labels) bool {
	ms, err := t.LabelMatchers()
	if err != nil {
		panic(err)
	}
	for _, m := range ms {
		if !m.Matches(lset.Get(m.Name)) {
			return false
		}
	}
	return true
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
