package parquetfile

import (
	"encoding/binary"
)

// Lists builds the columns of LISTs (or of a MAP) whose rows have the same numbers of elements:
// they share their levels.
type Lists struct {
	counts  []int // elements by row
	entries int   // level entries: an empty list has one
	levels  []byte
}

// Build encodes the repetition and definition levels of a LIST (or MAP) of required elements in a
// required group: each a 4-byte length and hybrid-coded bits (parquet-format, "Nested Encoding").
func (l *Lists) Build(s *Scratch, counts []int) {
	l.counts, l.entries, l.levels = counts, 0, l.levels[:0]
	l.bits(s, func(h *hybrid, n int) { // repetition: 0 begins a row, 1 goes on with it
		l.entries += max(1, n)
		h.run(0, 1)
		if n > 1 {
			h.run(1, n-1)
		}
	})
	l.bits(s, func(h *hybrid, n int) { // definition: 0 is the empty list, 1 an element
		if n == 0 {
			h.run(0, 1)
		} else {
			h.run(1, n)
		}
	})
}

func (l *Lists) bits(s *Scratch, put func(h *hybrid, n int)) {
	at := len(l.levels)
	h := newHybrid(append(l.levels, 0, 0, 0, 0), 1, s.pending)
	for _, n := range l.counts {
		put(&h, n)
	}
	l.levels = h.finish()
	s.pending = h.pending
	binary.LittleEndian.PutUint32(l.levels[at:], uint32(len(l.levels)-at-4))
}

// Int64s is a LIST of INT64, delta-coded, with statistics.
func (l *Lists) Int64s(path []string, s *Scratch, vals []int64) (Chunk, error) {
	s.Data = append(s.Data[:0], l.levels...)
	return int64s(path, s, l.entries, vals)
}

// Doubles is a LIST of DOUBLE, plain, without statistics: NaN has no place in them.
func (l *Lists) Doubles(path []string, s *Scratch, vals []float64) Chunk {
	s.Data = append(s.Data[:0], l.levels...)
	return doubles(path, s, l.entries, vals)
}

// Binaries is a LIST of byte strings, plain, without statistics.
func (l *Lists) Binaries(path []string, s *Scratch, vals [][]byte) Chunk {
	s.Data = append(s.Data[:0], l.levels...)
	return binaries(path, s, l.entries, vals)
}

// ListPath is the path of a LIST's elements.
func ListPath(col string) []string { return []string{col, "list", "element"} }
