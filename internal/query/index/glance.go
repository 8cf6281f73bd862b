package index

import (
	"hash/maphash"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/segment"
)

// Glance is a small summary of a table: a hash of each value of each label. It excludes most
// selectors that no row of the table matches, without the table. It is immutable.
type Glance struct {
	slots []uint16 // 0: empty; a hash is at its place, or after it if that was taken
	shift int      // of a hash, to its place
}

// maxGlance is the number of values of a table beyond which no Glance is made of it, so that none
// takes more than 16 KiB.
const maxGlance = 4 << 10

// glanceSeed keeps senders from making values collide.
var glanceSeed = maphash.MakeSeed()

// Glance returns the summary of the table; nil if that has too many values, or knows only some
// rows.
func (t *Table) Glance() *Glance {
	n := 0
	for i := range t.columns {
		n += t.columns[i].dict.len()
	}
	if t.Partial() || n > maxGlance {
		return nil
	}
	bits := 1
	for 1<<bits < 2*n {
		bits++
	}
	g := &Glance{slots: make([]uint16, 1<<bits), shift: 64 - bits}
	for i := range t.columns {
		d := &t.columns[i].dict
		for code := range d.len() {
			g.add(valueHash(t.names[i], d.value(code)))
		}
	}
	return g
}

func (g *Glance) add(h uint64) {
	i := int(h >> g.shift)
	for ; g.slots[i] != 0; i = (i + 1) & (len(g.slots) - 1) {
		if g.slots[i] == mark(h) {
			return
		}
	}
	g.slots[i] = mark(h)
}

// has reports whether the value of a hash may be in the table.
func (g *Glance) has(h uint64) bool {
	for i := int(h >> g.shift); g.slots[i] != 0; i = (i + 1) & (len(g.slots) - 1) {
		if g.slots[i] == mark(h) {
			return true
		}
	}
	return false
}

// mark returns the part of a hash that is kept. It is independent of the place.
func mark(h uint64) uint16 { return uint16(h) | 1 }

func valueHash(name, value string) uint64 {
	return maphash.String(glanceSeed, name) ^ 31*maphash.String(glanceSeed, value)
}

// Wanted is what the rows that match a list of matchers have: labels with one of some values each.
type Wanted []wantedLabel

// wantedLabel is a label with one of several values.
type wantedLabel struct {
	name   string
	values []wantedValue
}

// wantedValue is the hashes of a label with one value: in a Glance, and in segment.Values.
type wantedValue struct{ glance, stored uint64 }

func newWantedValue(name, value string) wantedValue {
	return wantedValue{valueHash(name, value), segment.ValueHash(name, value)}
}

// WantedBy returns what the rows that match ms have, by those matchers that list the values that
// they match. The metric is the last one: most objects have it, and lack another label.
func WantedBy(ms []*labels.Matcher) (out Wanted) {
	for _, m := range ms {
		switch {
		case m.Type == labels.MatchEqual && m.Value != "":
			out = append(out, wantedLabel{m.Name, []wantedValue{newWantedValue(m.Name, m.Value)}})
		case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0 && !m.Matches(""):
			l := wantedLabel{name: m.Name}
			for _, v := range m.SetMatches() {
				l.values = append(l.values, newWantedValue(m.Name, v))
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

// Excludes reports whether no row of the table can match one of several lists of matchers. A nil
// Glance excludes nothing.
func (g *Glance) Excludes(sets []Wanted) bool {
	if g == nil {
		return false
	}
	for _, w := range sets {
		missing := func(l wantedLabel) bool {
			return !slices.ContainsFunc(l.values, func(v wantedValue) bool { return g.has(v.glance) })
		}
		if !slices.ContainsFunc(w, missing) {
			return false
		}
	}
	return len(sets) > 0
}

// Footers are those of segments, which have filters.
type Footers []*segment.Info

// Exclude is Excludes for each of the segments, by the filters. It looks for one label in all of them
// before the next label: most of the time is spent waiting for the memory of filters, and short loops
// wait for several at once.
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
					missing[i] = l.missing(info)
				}
			}
		}
		for i := range out {
			out[i] = out[i] && missing[i]
		}
	}
	return out
}

// missing reports whether no series of a segment has the label, by the filter in the footer. The
// filter does not know the labels in the MAP.
func (l *wantedLabel) missing(info *segment.Info) bool {
	for i := range l.values {
		if info.Values.Has(l.values[i].stored) {
			return false
		}
	}
	return !slices.Contains(info.MapNames, l.name)
}
