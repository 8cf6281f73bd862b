package lookup

import (
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// maxGlances is the number of objects of which a glance is kept, at most 16 KiB each.
const maxGlances = 1 << 10

// glances are those of the objects whose footers were read last, each at the number of its footer
// modulo their size. A rule that reads one host need not look at the tables of the segments that came
// since, of which most have other hosts. It is safe for concurrent use.
type glances [maxGlances]atomic.Pointer[glance]

type glance struct {
	object        uint32
	*index.Glance // nil: the table has too many values
}

// of returns the glance of an object, and whether its table was glanced at.
func (s *glances) of(object uint32) (*index.Glance, bool) {
	if g := s[object%maxGlances].Load(); g != nil && g.object == object {
		return g.Glance, true
	}
	return nil, false
}

// add keeps a glance of the whole table of an object, unless it has a filter.
func (s *glances) add(f *source.Footer, t *index.Table) {
	object := f.Number
	if _, known := s.of(object); known || t.Partial() || len(f.Values) > 0 {
		return
	}
	if old := s[object%maxGlances].Load(); old == nil || old.object < object {
		s[object%maxGlances].Store(&glance{object, t.Glance()})
	}
}

// excluding returns a function that reports which of some objects of all have no row that matches
// one of sets, by the filters in their footers or at a glance.
func (s *Tables) excluding(sets [][]*labels.Matcher) func(all []source.Object, some []int) []bool {
	return func(all []source.Object, some []int) []bool {
		wanted := make([]index.Wanted, len(sets))
		for i, ms := range sets {
			wanted[i] = index.WantedBy(ms)
		}
		footers := make(index.Footers, len(some))
		for k, i := range some {
			footers[k] = &all[i].Footer.Info
		}
		excluded := footers.Exclude(wanted)
		for k, i := range some {
			if g, _ := s.glances.of(all[i].Footer.Number); g.Excludes(wanted) {
				excluded[k] = true
			}
		}
		return excluded
	}
}
