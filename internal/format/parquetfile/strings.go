package parquetfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// Strings builds a dictionary-coded REQUIRED string column of one row group from runs. Values are
// ordinals of a value table that outlives the file; the file's dictionary holds only the values
// that occur. Call Reset before each row group.
type Strings struct {
	runs  runs
	dict  []string
	local []uint64 // by ordinal: epoch<<32 | index in dict; valid if the epoch is the current one
	epoch uint64
	empty int // index of "" in dict, or -1
}

// Reset empties the column.
func (c *Strings) Reset() {
	c.empty = -1
	c.runs.reset()
	c.dict = c.dict[:0]
	c.epoch++
}

// Set appends empty values up to row, and then values[ord] at row.
func (c *Strings) Set(row int, ord uint32, values []string) {
	c.Fill(row)
	c.Append(ord, values, 1)
}

// Append appends n copies of values[ord].
func (c *Strings) Append(ord uint32, values []string, n int) {
	if int(ord) >= len(c.local) {
		c.local = append(c.local, make([]uint64, len(values)-len(c.local))...)
	}
	e := c.local[ord]
	if e>>32 != c.epoch {
		e = c.epoch<<32 | uint64(c.add(values[ord]))
		c.local[ord] = e
	}
	c.runs.push(uint32(e), n)
}

// Fill appends empty values until the column has the given number of rows.
func (c *Strings) Fill(rows int) {
	if rows == c.runs.rows {
		return
	}
	if c.empty < 0 {
		c.empty = c.add("")
	}
	c.runs.push(uint32(c.empty), rows-c.runs.rows)
}

// Pick appends, from a row on, values[ords[i-first]-1] for each i of at; nothing where an ordinal is
// 0, so that the row is empty.
func Pick[T uint16 | uint32](c *Strings, row int, ords []T, at []uint32, first uint32, values []string) {
	if len(values) > len(c.local) {
		c.local = append(c.local, make([]uint64, len(values)-len(c.local))...)
	}
	local, epoch := c.local, c.epoch
	last, from := T(0), 0 // of the run: its ordinal, and where it begins
	for i, r := range at {
		ord := ords[r-first]
		if ord == last {
			continue
		}
		if last > 0 {
			if c.runs.rows != row+from {
				c.Fill(row + from)
			}
			e := local[last-1]
			if e>>32 != epoch {
				e = epoch<<32 | uint64(c.add(values[last-1]))
				local[last-1] = e
			}
			c.runs.push(uint32(e), i-from)
		}
		last, from = ord, i
	}
	if last > 0 {
		c.Fill(row + from)
		c.Append(uint32(last-1), values, len(at)-from)
	}
}

func (c *Strings) add(v string) int {
	if v == "" {
		if c.empty >= 0 {
			return c.empty
		}
		c.empty = len(c.dict)
	}
	c.dict = append(c.dict, v)
	return len(c.dict) - 1
}

// Distinct returns the values of the row group, each once, in no order. It is valid until Reset.
func (c *Strings) Distinct() []string { return c.dict }

// Chunk encodes the column, which must have a row. The chunk aliases s.
func (c *Strings) Chunk(name string, s *Scratch) Chunk {
	lo, hi := c.dict[0], c.dict[0]
	s.Dict = s.Dict[:0]
	for _, v := range c.dict {
		lo, hi = min(lo, v), max(hi, v)
		s.Dict = appendString(s.Dict, v)
	}
	return Chunk{
		Path: []string{name}, Type: format.ByteArray, Dict: s.Dict, DictLen: len(c.dict),
		Pages: c.runs.page(len(c.dict), s), Min: []byte(lo), Max: []byte(hi),
	}
}

// appendString appends a BYTE_ARRAY in PLAIN encoding: its length in 4 bytes, then its bytes.
func appendString[T string | []byte](dst []byte, v T) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
}

// runs is a column of dictionary indexes in runs.
type runs struct {
	rows  int
	list  []run
	short bool // store short runs as such
}

// run is n copies of the dictionary entry idx.
type run struct{ idx, n uint32 }

func (r *runs) reset() { r.rows, r.list = 0, r.list[:0] }

func (r *runs) push(idx uint32, n int) {
	r.rows += n
	if last := len(r.list) - 1; last >= 0 && r.list[last].idx == idx {
		r.list[last].n += uint32(n)
		return
	}
	r.list = append(r.list, run{idx, uint32(n)})
}

// page encodes the indexes into a dictionary of the given number of entries as one RLE_DICTIONARY
// page, in s.Data.
func (r *runs) page(entries int, s *Scratch) []Page {
	s.Data = r.append(s.Data[:0], entries, &s.pending)
	return s.page(format.RLEDictionary, r.rows)
}

// append appends the encoded page to dst.
func (r *runs) append(dst []byte, entries int, pending *[]uint32) []byte {
	width := max(1, bits.Len(uint(entries-1)))
	h := newHybrid(append(dst, byte(width)), width, *pending)
	if r.short {
		h.least = shortRun(width)
	}
	for _, x := range r.list {
		h.run(x.idx, int(x.n))
	}
	dst = h.finish()
	*pending = h.pending
	return dst
}
