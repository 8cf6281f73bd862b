package segment

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// dictColumn builds one dictionary-coded REQUIRED string column of a row group from runs. Its values are given as ordinals of
// a value table that outlives the file; the file's dictionary holds only those that occur.
type dictColumn struct {
	rows  int // rows so far
	runs  []run
	dict  []string
	local []uint64 // by ordinal: epoch<<32 | index in dict, valid if the epoch is the current one
	epoch uint64
	empty int // index of "" in dict, or -1
}

// run is n times the dictionary entry idx.
type run struct{ idx, n uint32 }

func (c *dictColumn) reset() {
	c.rows, c.empty = 0, -1
	c.runs, c.dict = c.runs[:0], c.dict[:0]
	c.epoch++
}

// set appends empty values up to row and then values[ord] at row.
func (c *dictColumn) set(row int, ord uint32, values []string) {
	c.fill(row)
	if int(ord) >= len(c.local) {
		c.local = append(c.local, make([]uint64, len(values)-len(c.local))...)
	}
	e := c.local[ord]
	if e>>32 != c.epoch {
		e = c.epoch<<32 | uint64(c.add(values[ord]))
		c.local[ord] = e
	}
	c.push(uint32(e), 1)
}

// fill appends empty values until the column has the given number of rows.
func (c *dictColumn) fill(rows int) {
	if rows == c.rows {
		return
	}
	if c.empty < 0 {
		c.empty = c.add("")
	}
	c.push(uint32(c.empty), rows-c.rows)
}

func (c *dictColumn) add(v string) int {
	if v == "" {
		if c.empty >= 0 {
			return c.empty
		}
		c.empty = len(c.dict)
	}
	c.dict = append(c.dict, v)
	return len(c.dict) - 1
}

func (c *dictColumn) push(idx uint32, n int) {
	c.rows += n
	c.runs = append(c.runs, run{idx, uint32(n)})
}

// chunk encodes the column. The returned slices alias the scratch buffers.
func (c *dictColumn) chunk(name string, s *scratch) chunk {
	lo, hi := c.dict[0], c.dict[0]
	s.dict = s.dict[:0]
	for _, v := range c.dict {
		lo, hi = min(lo, v), max(hi, v)
		s.dict = binary.LittleEndian.AppendUint32(s.dict, uint32(len(v)))
		s.dict = append(s.dict, v...)
	}
	width := max(1, bits.Len(uint(len(c.dict)-1)))
	h := newHybrid(append(s.data[:0], byte(width)), width, s.pending)
	for _, r := range c.runs {
		h.run(r.idx, int(r.n))
	}
	s.data = h.finish()
	s.pending = h.pending
	return chunk{
		path: []string{name}, typ: format.ByteArray, encoding: format.RLEDictionary,
		dict: s.dict, dictLen: len(c.dict), data: s.data, values: c.rows, min: []byte(lo), max: []byte(hi),
	}
}

// scratch is buffer space shared by the columns of one writer.
type scratch struct {
	dict, data []byte
	pending    []uint32
}
