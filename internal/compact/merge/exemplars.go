package merge

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/store/live"
)

// readExemplars reads the exemplars of all rows into out, ascending in time, equal ones once.
// Tombstones delete exemplars as they delete samples.
func (m *merger) readExemplars() (err error) {
	out := m.out.Exemplars
	clear(out)
	out = out[:0]
	for _, a := range m.rows {
		s := m.sources[a.source]
		if s.rest == nil || s.rest[a.row].exemplars == 0 {
			continue
		}
		from := len(out)
		if out, err = s.content.exemplars(&s.rest[a.row], out); err != nil {
			return s.fail(err)
		}
		if gone := m.gone(a.source); len(gone) > 0 {
			kept := slices.DeleteFunc(out[from:], func(e exemplar.Exemplar) bool { return live.Within(e.Ts, gone) })
			out = out[:from+len(kept)]
		}
	}
	slices.SortStableFunc(out, compareExemplars)
	m.out.Exemplars = slices.CompactFunc(out, func(a, b exemplar.Exemplar) bool { return compareExemplars(a, b) == 0 })
	return nil
}

// compareExemplars orders by time, then by value and labels, so that equal ones are neighbours and
// the result does not depend on the order of the sources.
func compareExemplars(a, b exemplar.Exemplar) int {
	return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(math.Float64bits(a.Value), math.Float64bits(b.Value)), labels.Compare(a.Labels, b.Labels))
}
