package parquetfile

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Lists builds LIST columns (or the columns of a MAP) whose rows have the same numbers of elements,
// so that they share their levels.
type Lists struct {
	counts  []int // elements per row
	entries int   // level entries: an empty list has one
	levels  []byte
}

// Build encodes the repetition and definition levels of a LIST (or MAP) of required elements in a
// required group: each a 4-byte length and hybrid-coded bits (parquet-format, "Nested Encoding").
func (l *Lists) Build(s *Scratch, counts []int) {
	l.counts, l.entries, l.levels = counts, 0, l.levels[:0]
	l.bits(s, func(h *hybrid, rows, n int) { // repetition: 0 starts a row, 1 continues it
		l.entries += rows * max(1, n)
		if n <= 1 {
			h.run(0, rows)
			return
		}
		for range rows {
			h.run(0, 1)
			h.run(1, n-1)
		}
	})
	l.bits(s, func(h *hybrid, rows, n int) { // definition: 0 is an empty list, 1 an element
		h.run(uint32(min(1, n)), rows*max(1, n))
	})
}

// bits encodes levels. put appends those of adjacent rows with n elements each.
func (l *Lists) bits(s *Scratch, put func(h *hybrid, rows, n int)) {
	l.levels = appendLevels(l.levels, s, func(h *hybrid) {
		for from, to := 0, 0; from < len(l.counts); from = to {
			n := l.counts[from]
			for to = from + 1; to < len(l.counts) && l.counts[to] == n; {
				to++
			}
			put(h, to-from, n)
		}
	})
}

// appendLevels appends levels of one bit with their length.
func appendLevels(dst []byte, s *Scratch, put func(h *hybrid)) []byte {
	at := len(dst)
	h := newHybrid(append(dst, 0, 0, 0, 0), 1, s.pending)
	put(&h)
	dst = h.finish()
	s.pending = h.pending
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// Int64s returns a delta-coded LIST of INT64 with statistics. The chunk aliases s.
func (l *Lists) Int64s(path []string, s *Scratch, vals []int64) (Chunk, error) {
	s.Data = append(s.Data[:0], l.levels...)
	return int64s(path, s, l.entries, vals)
}

// Doubles returns a PLAIN LIST of DOUBLE without statistics, which cannot hold NaN. The chunk
// aliases s.
func (l *Lists) Doubles(path []string, s *Scratch, vals []float64) Chunk {
	s.Data = append(s.Data[:0], l.levels...)
	return doubles(path, s, l.entries, vals)
}

// DoublePages is Doubles in pages of so many rows, compressed as Words does, if each list has one
// element. A reader of a few rows decompresses only their pages.
func (l *Lists) DoublePages(path []string, s *Scratch, vals []float64, rows int) Chunk {
	if len(vals) == 0 || l.entries != len(vals) || len(l.counts) != len(vals) {
		return l.Doubles(path, s, vals)
	}
	c := Chunk{Path: path, Type: format.Double}
	s.Data = slices.Grow(s.Data[:0], 8*len(vals)+levelBytes*(len(vals)/rows+1))
	for part := range slices.Chunk(vals, rows) {
		from := len(s.Data)
		s.Data = appendLevels(s.Data, s, func(h *hybrid) { h.run(0, len(part)) })
		s.Data = appendLevels(s.Data, s, func(h *hybrid) { h.run(1, len(part)) })
		s.Data = putDoubles(s.Data, part)
		c.Pages = append(c.Pages, Page{Encoding: format.Plain, Data: s.Data[from:], Values: len(part), Words: true})
	}
	return c
}

// levelBytes is more than the levels of lists of one element take in a page.
const levelBytes = 32

// Binaries returns a PLAIN LIST of byte strings without statistics. The chunk aliases s.
func (l *Lists) Binaries(path []string, s *Scratch, vals [][]byte) Chunk {
	s.Data = append(s.Data[:0], l.levels...)
	return binaries(path, s, l.entries, vals)
}

// ListPath returns the path of a LIST's elements.
func ListPath(col string) []string { return []string{col, "list", "element"} }
