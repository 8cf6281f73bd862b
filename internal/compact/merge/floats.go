package merge

import "slices"

// readFloats reads the floats of all rows, one row after the other.
func (m *merger) readFloats() error {
	f := &m.floats
	f.Reset()
	for _, a := range m.rows {
		f.Begin(int(a.source))
		s, from := m.sources[a.source], len(f.TS)
		r := s.row(a.row)
		if r.floats == 0 {
			continue
		}
		if err := s.content.floats(r, &f.Run); err != nil {
			return s.fail(err)
		}
		m.stats.Read += int64(len(f.TS) - from)
		if s.mixed {
			f.Divide(from)
		}
		if !m.hasST {
			f.ST = nil
		} else { // a source without start timestamps
			known := len(f.ST)
			f.ST = slices.Grow(f.ST, len(f.TS)-known)[:len(f.TS)]
			clear(f.ST[known:])
		}
		m.stats.Deleted += int64(f.Cut(from, m.gone(a.source)))
	}
	return nil
}
