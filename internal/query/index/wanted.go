package index

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/segment"
)

// Wanted is what the rows that match a list of matchers have: labels with one of some values each.
type Wanted []wantedLabel

// wantedLabel is a label with one of several values.
type wantedLabel struct {
	name   string
	values []uint64 // segment.ValueHash
}

// WantedBy returns what the rows that match ms have, by those matchers that list the values that
// they match. The metric is the last one: most objects have it, and lack another label.
func WantedBy(ms []*labels.Matcher) (out Wanted) {
	for _, m := range ms {
		switch {
		case m.Type == labels.MatchEqual && m.Value != "":
			out = append(out, wantedLabel{m.Name, []uint64{segment.ValueHash(m.Name, m.Value)}})
		case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0 && !m.Matches(""):
			l := wantedLabel{name: m.Name}
			for _, v := range m.SetMatches() {
				l.values = append(l.values, segment.ValueHash(m.Name, v))
			}
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b wantedLabel) int {
		metric := func(l wantedLabel) int {
			if l.name == model.MetricNameLabel {
				return 1
			}
			return 0
		}
		return metric(a) - metric(b)
	})
	return out
}

// Footers are those of segments, which have filters.
type Footers []*segment.Info

// Exclude reports, for each of the segments, whether no row can match one of several lists of
// matchers, by the filters. It looks for one label in all of them before the next label: most of
// the time is spent waiting for the memory of filters, and short loops wait for several at once.
func (f Footers) Exclude(sets []Wanted) []bool {
	out := make([]bool, len(f)) // no list so far has only labels that the filter has
	for i, info := range f {
		out[i] = len(sets) > 0 && len(info.Values) > 0
	}
	missing := make([]bool, len(f)) // a label of the list
	for _, w := range sets {
		clear(missing)
		for _, l := range w {
			for i, info := range f {
				if out[i] && !missing[i] {
					missing[i] = !slices.ContainsFunc(l.values, info.Values.Has) && !slices.Contains(info.MapNames, l.name)
				}
			}
		}
		for i := range out {
			out[i] = out[i] && missing[i]
		}
	}
	return out
}
