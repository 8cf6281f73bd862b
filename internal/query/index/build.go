package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

// builder builds a column from runs of values, row group by row group.
type builder struct {
	rows uint32
	// in the order of addition; may contain duplicates, and alias memory that is reused later
	values []string
	runs   []valueRun
	empty  int // position of "" in values, or -1
}

// valueRun is a run of rows with the same value. end is the row after the run.
type valueRun struct{ end, value uint32 }

// leastRuns is the number of runs for which there is room at first.
const leastRuns = 256

// reset empties the builder. It holds none of the values any more.
func (b *builder) reset() {
	clear(b.values)
	b.rows, b.values, b.runs, b.empty = 0, b.values[:0], b.runs[:0], -1
}

// add appends n rows with the value at an index of values.
func (b *builder) add(value int, n int) {
	b.rows += uint32(n)
	if k := len(b.runs); k > 0 && b.runs[k-1].value == uint32(value) {
		b.runs[k-1].end = b.rows
		return
	}
	if n := len(b.runs); n == cap(b.runs) {
		b.runs = slices.Grow(b.runs, max(n, leastRuns)) // twice as many: fewer would leave more garbage
	}
	b.runs = append(b.runs, valueRun{b.rows, uint32(value)})
}

// fill appends rows without the label up to, but not including, a row.
func (b *builder) fill(row int) {
	if int(b.rows) >= row {
		return
	}
	if b.empty < 0 {
		b.empty = len(b.values)
		b.values = append(b.values, "")
	}
	b.add(b.empty, row-int(b.rows))
}

// column returns the column and adds the hashes of its labels to the keys of the rows. Without
// keys, the column keeps the hashes.
func (b *builder) column(name string, seed uint64, keys []Key) (column, error) {
	var c column
	codeOf, err := b.sort(&c.dict)
	if err != nil {
		return c, err
	}
	hashes, salt := make([]Key, c.dict.len()), xxh3.HashStringSeed(name, seed)
	for i := range hashes {
		if v := c.dict.value(i); v != "" {
			hashes[i] = xxh3.HashString128Seed(v, salt)
		}
	}
	if keys == nil {
		c.hashes = hashes
	}
	row := uint32(0)
	merged := b.runs[:0]
	for _, r := range b.runs {
		r.value = codeOf[r.value]
		for h := hashes[r.value]; keys != nil && row < r.end; row++ {
			keys[row] = sumOf(keys[row], h)
		}
		if k := len(merged); k > 0 && merged[k-1].value == r.value {
			merged[k-1].end = r.end
			continue
		}
		merged = append(merged, r)
	}
	c.lay(merged, int(b.rows))
	return c, nil
}

// sort builds the dictionary of the values and returns the code of each value.
func (b *builder) sort(d *dict) (codeOf []uint32, err error) {
	order := make([]uint32, len(b.values))
	size := 0
	for i := range order {
		order[i] = uint32(i)
		size += len(b.values[i])
	}
	if size > maxText {
		return nil, fmt.Errorf("the values of a label have %d bytes in total, the limit is %d", size, maxText)
	}
	slices.SortFunc(order, func(i, j uint32) int { return strings.Compare(b.values[i], b.values[j]) })
	codeOf = make([]uint32, len(b.values))
	var text strings.Builder
	text.Grow(size)
	for k, i := range order {
		if v := b.values[i]; k == 0 || v != b.values[order[k-1]] {
			text.WriteString(v)
			d.ends = append(d.ends, uint32(text.Len()))
		}
		codeOf[i] = uint32(len(d.ends) - 1)
	}
	d.text, d.ends = text.String(), slices.Clip(d.ends)
	return codeOf, nil
}

// lay stores codes by row or by run, whichever is smaller.
func (c *column) lay(runs []valueRun, rows int) {
	const end = 4 // bytes
	size := codeBytes(c.dict.len())
	if (size+end)*len(runs) > size*rows {
		c.codes = codesOf(runs, rows, c.dict.len())
		return
	}
	c.ends = make([]uint32, len(runs))
	for i := range runs {
		c.ends[i] = runs[i].end
		runs[i].end = uint32(i + 1)
	}
	c.codes = codesOf(runs, len(runs), c.dict.len())
	c.ascending = len(runs) == c.dict.len()
	for i := range runs {
		c.ascending = c.ascending && runs[i].value == uint32(i)
	}
}
