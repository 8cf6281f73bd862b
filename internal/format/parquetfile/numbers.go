package parquetfile

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Numbers builds a dictionary-coded REQUIRED column of 8-byte values of one row group from runs. It
// compares values by their bits, so that every NaN and -0 is kept. The dictionary has the values in
// the order of their first occurrence. Call Reset before each row group.
type Numbers struct {
	runs  runs
	dict  []uint64
	slots []uint32 // open addressing: index in dict plus one, 0 = free
	last  uint32   // index of the last value

	pending []uint32 // scratch of AppendPage
}

const minNumberSlots = 16

// Reset empties the column.
func (c *Numbers) Reset() {
	c.runs.reset()
	c.dict = c.dict[:0]
	clear(c.slots)
}

// Reserve makes room for so many runs, each of a value of its own.
func (c *Numbers) Reserve(runs int) {
	c.runs.list = slices.Grow(c.runs.list, runs)
	c.dict = slices.Grow(c.dict, runs)
	for 2*runs > len(c.slots) {
		c.grow()
	}
}

// ShortRuns says that nearly all values are different from run to run, as identifiers are. Short
// runs of them do not compress if they are bit-packed.
func (c *Numbers) ShortRuns() { c.runs.short = true }

// Append appends n copies of the value with the given bits.
func (c *Numbers) Append(v uint64, n int) {
	if len(c.dict) == 0 || c.dict[c.last] != v {
		c.last = c.intern(v)
	}
	c.runs.push(c.last, n)
}

// Distinct returns the number of entries of the dictionary.
func (c *Numbers) Distinct() int { return len(c.dict) }

func (c *Numbers) intern(v uint64) uint32 {
	if 2*(len(c.dict)+1) > len(c.slots) {
		c.grow()
	}
	i := c.slot(v)
	for ; c.slots[i] != 0; i = (i + 1) & (len(c.slots) - 1) {
		if at := c.slots[i] - 1; c.dict[at] == v {
			return at
		}
	}
	c.dict = append(c.dict, v)
	c.slots[i] = uint32(len(c.dict))
	return uint32(len(c.dict) - 1)
}

// slot returns the first slot of the search for v: high bits of its product with an odd number near
// 2^64/φ (Fibonacci hashing).
func (c *Numbers) slot(v uint64) int {
	h := (v ^ v>>32) * 0x9e3779b97f4a7c15
	return int(h>>32) & (len(c.slots) - 1)
}

func (c *Numbers) grow() {
	c.slots = make([]uint32, max(minNumberSlots, 2*len(c.slots)))
	for at, v := range c.dict {
		i := c.slot(v)
		for c.slots[i] != 0 {
			i = (i + 1) & (len(c.slots) - 1)
		}
		c.slots[i] = uint32(at + 1)
	}
}

// Uint64s returns the column as unsigned INT64, with statistics. It must have a row. The chunk
// aliases s.
func (c *Numbers) Uint64s(name string, s *Scratch) Chunk {
	out := c.chunk(name, format.Int64, s)
	out.Min, out.Max = stat(slices.Min(c.dict)), stat(slices.Max(c.dict))
	return out
}

// PlainUint64s is Uint64s without a dictionary.
func (c *Numbers) PlainUint64s(name string, s *Scratch) Chunk {
	s.Data = slices.Grow(s.Data[:0], 8*c.runs.rows)
	for _, r := range c.runs.list {
		for range r.n {
			s.Data = binary.LittleEndian.AppendUint64(s.Data, c.dict[r.idx])
		}
	}
	return Chunk{
		Path: []string{name}, Type: format.Int64, Pages: s.page(format.Plain, c.runs.rows), Min: stat(slices.Min(c.dict)), Max: stat(slices.Max(c.dict)),
	}
}

// Doubles returns the column as DOUBLE, without statistics. It must have a row. The chunk aliases
// s.
func (c *Numbers) Doubles(name string, s *Scratch) Chunk { return c.chunk(name, format.Double, s) }

// AppendPage appends the values since the last AppendPage, or Reset, as one RLE_DICTIONARY page of
// a chunk with several pages.
func (c *Numbers) AppendPage(dst []byte) []byte {
	dst = c.runs.append(dst, len(c.dict), &c.pending)
	c.runs.reset()
	return dst
}

// AppendDict appends the dictionary as a PLAIN page.
func (c *Numbers) AppendDict(dst []byte) []byte { return AppendWords(dst, c.dict) }

func (c *Numbers) chunk(name string, t format.Type, s *Scratch) Chunk {
	s.Dict = c.AppendDict(s.Dict[:0])
	return Chunk{Path: []string{name}, Type: t, Dict: s.Dict, DictLen: len(c.dict), Pages: c.runs.page(len(c.dict), s)}
}
