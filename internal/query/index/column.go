package index

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// column holds the values of one label in all rows, as codes of a dictionary: one code per row, or
// one per run of equal rows, whichever takes less memory.
type column struct {
	dict  dict
	ends  []uint32 // by run: the row after it; nil if there is a code per row
	codes codes

	hashes []Key // by code, of the label; nil: the table has the keys of the rows

	ascending bool // there is one run for each code, in their order
}

// dict is the sorted distinct values of a label. "" represents series without the label. The code
// of a value is its index.
type dict struct {
	text string
	ends []uint32 // the end of each value in text
}

// maxText bounds the text of a dictionary, in bytes.
const maxText = math.MaxUint32

func (d *dict) len() int { return len(d.ends) }

func (d *dict) value(code int) string {
	from := uint32(0)
	if code > 0 {
		from = d.ends[code-1]
	}
	return d.text[from:d.ends[code]]
}

// search returns the first code whose value is not less than v, and whether the value equals v.
func (d *dict) search(v string) (code int, found bool) {
	return sort.Find(d.len(), func(i int) int { return strings.Compare(v, d.value(i)) })
}

// codes holds numbers in the smallest integer type that fits the largest one: one of the slices is
// set.
type codes struct {
	b1 []uint8
	b2 []uint16
	b4 []uint32
}

// codeBytes is the size of numbers that are less than limit.
func codeBytes(limit int) int {
	switch {
	case limit <= 1<<8:
		return 1
	case limit <= 1<<16:
		return 2
	}
	return 4
}

// codesOf stores n numbers, which are less than limit, of runs.
func codesOf(runs []valueRun, n, limit int) codes {
	switch codeBytes(limit) {
	case 1:
		return codes{b1: narrow[uint8](runs, n)}
	case 2:
		return codes{b2: narrow[uint16](runs, n)}
	}
	return codes{b4: narrow[uint32](runs, n)}
}

func narrow[T uint8 | uint16 | uint32](runs []valueRun, n int) []T {
	out := make([]T, n)
	at := uint32(0)
	for _, r := range runs {
		for v := T(r.value); at < r.end; at++ {
			out[at] = v
		}
	}
	return out
}

func (c *codes) at(i int) uint32 {
	switch {
	case c.b1 != nil:
		return uint32(c.b1[i])
	case c.b2 != nil:
		return uint32(c.b2[i])
	}
	return c.b4[i]
}

// index returns how far after from the first code in [from, upto) is that equals code, -1 if there
// is none.
func (c *codes) index(from, upto int, code uint32) int {
	switch {
	case c.b1 != nil:
		return bytes.IndexByte(c.b1[from:upto], uint8(code))
	case c.b2 != nil:
		return slices.Index(c.b2[from:upto], uint16(code))
	}
	return slices.Index(c.b4[from:upto], code)
}

func (c *codes) bytes() int64 { return int64(len(c.b1) + 2*len(c.b2) + 4*len(c.b4)) }

// code returns the code of a row. run holds the run that was found last, as a hint for the next
// search.
func (c *column) code(row uint32, run *int) uint32 {
	if c.ends == nil {
		return c.codes.at(int(row))
	}
	i := *run
	if i >= len(c.ends) || i > 0 && row < c.ends[i-1] {
		i = 0
	}
	if row >= c.ends[i] {
		if i++; row >= c.ends[i] {
			i += sort.Search(len(c.ends)-i, func(j int) bool { return row < c.ends[i+j] })
		}
	}
	*run = i
	return c.codes.at(i)
}

func (c *column) bytes() int64 {
	return int64(unsafe.Sizeof(*c)) + int64(len(c.dict.text)+4*len(c.dict.ends)+4*len(c.ends)+16*len(c.hashes)) + c.codes.bytes()
}
