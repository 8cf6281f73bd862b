package segment

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// lists holds the columns of LISTs whose rows have the same numbers of elements: they share their levels.
type lists struct {
	counts  []int // elements by row
	entries int   // level entries: an empty list has one
	levels  []byte
}

// build encodes the repetition and definition levels of a LIST (or MAP) of required elements in a required group: each
// a 4-byte length and hybrid-coded bits (parquet-format, "Nested Encoding").
func (l *lists) build(s *scratch, counts []int) {
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

func (l *lists) bits(s *scratch, put func(h *hybrid, n int)) {
	at := len(l.levels)
	h := newHybrid(append(l.levels, 0, 0, 0, 0), 1, s.pending)
	for _, n := range l.counts {
		put(&h, n)
	}
	l.levels = h.finish()
	s.pending = h.pending
	binary.LittleEndian.PutUint32(l.levels[at:], uint32(len(l.levels)-at-4))
}

func (l *lists) chunk(path []string, t format.Type, e format.Encoding, s *scratch) chunk {
	return chunk{path: path, typ: t, encoding: e, data: s.data, values: l.entries}
}

func listPath(col string) []string { return []string{col, "list", "element"} }

// int64s is a LIST of INT64, delta-coded, with statistics.
func (l *lists) int64s(col string, s *scratch, vals []int64) (chunk, error) {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	enc, err := new(delta.BinaryPackedEncoding).EncodeInt64(s.dict[:0], vals)
	if err != nil {
		return chunk{}, err
	}
	s.dict = enc
	s.data = append(append(s.data[:0], l.levels...), enc...)
	c := l.chunk(listPath(col), format.Int64, format.DeltaBinaryPacked, s)
	if len(vals) > 0 {
		c.min, c.max = binary.LittleEndian.AppendUint64(nil, uint64(lo)), binary.LittleEndian.AppendUint64(nil, uint64(hi))
	}
	return c, nil
}

// doubles is a LIST of DOUBLE, plain. Statistics are left out: NaN has no place in them.
func (l *lists) doubles(col string, s *scratch, vals []float64) chunk {
	s.data = append(s.data[:0], l.levels...)
	for _, v := range vals {
		s.data = binary.LittleEndian.AppendUint64(s.data, math.Float64bits(v))
	}
	return l.chunk(listPath(col), format.Double, format.Plain, s)
}

// binaries is a LIST of byte strings, plain.
func (l *lists) binaries(path []string, s *scratch, vals [][]byte) chunk {
	s.data = append(s.data[:0], l.levels...)
	for _, v := range vals {
		s.data = binary.LittleEndian.AppendUint32(s.data, uint32(len(v)))
		s.data = append(s.data, v...)
	}
	return l.chunk(path, format.ByteArray, format.Plain, s)
}
