package parquetfile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
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
		s.Data = AppendWords(s.Data, part)
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

// Singles reports whether each list of a page has one element, as after a scrape, so that the
// element of a list is at its position.
func (p *DataPage) Singles() bool {
	return allLevels(p.Repetition, p.Entries, 0) && allLevels(p.Definition, p.Entries, 1)
}

// allLevels reports whether all of n levels are level.
func allLevels(b []byte, n, level int) bool {
	all := true
	err := levelRuns(b, n, func(r Run) { all = all && r.Index == level })
	return err == nil && all
}

// WordsAt appends 8-byte values of a PLAIN page of n: those at ascending positions less first.
func WordsAt[T word](p *DataPage, dst []T, n int, at []uint32, first uint32) ([]T, error) {
	if p.Encoding != format.Plain || len(p.Values) != 8*n {
		return nil, fmt.Errorf("%w: %d bytes of %d values in encoding %v", ErrFormat, len(p.Values), n, p.Encoding)
	}
	end := len(dst)
	dst = slices.Grow(dst, len(at))[:end+len(at)]
	words := wordsOf(dst[end:])
	for k, i := range at {
		if int(i-first) >= n {
			return nil, errPosition(i-first, n)
		}
		words[k] = binary.LittleEndian.Uint64(p.Values[8*(i-first):])
	}
	return dst, nil
}

// Int64sAt is WordsAt for INT64, in PLAIN or DELTA_BINARY_PACKED. Values after the last position
// are not decoded.
func (p *DataPage) Int64sAt(dst []int64, n int, at []uint32, first uint32) ([]int64, error) {
	if p.Encoding != format.DeltaBinaryPacked {
		return WordsAt(p, dst, n, at, first)
	}
	var d delta.Reader
	if err := d.Reset(p.Values, n); err != nil {
		return nil, asFormat(err)
	}
	dst = slices.Grow(dst, len(at))
	next := 0 // position of the reader
	for len(at) > 0 {
		from, k := int(at[0]-first), 1
		for k < len(at) && at[k] == at[k-1]+1 {
			k++
		}
		if from < next {
			return nil, errPosition(at[0]-first, n)
		}
		if err := d.Skip(from - next); err != nil {
			return nil, asFormat(err)
		}
		end := len(dst)
		dst = dst[:end+k]
		if err := d.Read(wordsOf(dst[end:])); err != nil {
			return nil, asFormat(err)
		}
		next, at = from+k, at[k:]
	}
	return dst, nil
}

func errPosition(i uint32, n int) error {
	return fmt.Errorf("%w: position %d in a page of %d values", ErrFormat, i, n)
}
