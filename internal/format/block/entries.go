package block

import "github.com/promlake/promlake/internal/format/series"

// entry is a row of the series table.
type entry struct {
	id                       uint64
	minT, maxT               int64
	ref                      series.Ref
	floats, hists, exemplars uint32
}

func (e *entry) see(first, last int64) { e.minT, e.maxT = min(e.minT, first), max(e.maxT, last) }

// entries are the rows of the series table. A block may have millions, and most have neither
// histograms nor exemplars, and the identifier of their labels: those take 24 bytes.
type entries struct {
	refs   []series.Ref
	floats []uint32
	times  [][2]int64        // minT and maxT
	rest   [][2]uint32       // histograms and exemplars; nil: no row has any
	moved  map[uint32]uint64 // by row: its identifier, if it is not that of its labels
}

func (s *entries) len() int { return len(s.refs) }

// add appends a row. id is the identifier of its labels.
func (s *entries) add(e *entry, id uint64) {
	n := len(s.refs)
	s.refs, s.floats, s.times = append(s.refs, e.ref), append(s.floats, e.floats), append(s.times, [2]int64{e.minT, e.maxT})
	if s.rest == nil && e.hists|e.exemplars != 0 {
		s.rest = make([][2]uint32, n, cap(s.refs))
	}
	if s.rest != nil {
		s.rest = append(s.rest, [2]uint32{e.hists, e.exemplars})
	}
	if e.id != id {
		s.moved[uint32(n)] = e.id
	}
}

// at returns a row, whose labels are in v.
func (s *entries) at(i int, v *series.View) entry {
	e := entry{ref: s.refs[i], id: v.ID(s.refs[i]), floats: s.floats[i], minT: s.times[i][0], maxT: s.times[i][1]}
	if s.rest != nil {
		e.hists, e.exemplars = s.rest[i][0], s.rest[i][1]
	}
	if id, ok := s.moved[uint32(i)]; ok {
		e.id = id
	}
	return e
}
