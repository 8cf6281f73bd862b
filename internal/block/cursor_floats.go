package block

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/segment"
)

// FloatRun is a run of float samples. Times in ms; ST is nil if the block has no start timestamps.
type FloatRun struct {
	TS []int64
	V  []float64
	ST []int64
}

// Reset empties the run and keeps its memory.
func (f *FloatRun) Reset() { f.TS, f.V, f.ST = f.TS[:0], f.V[:0], f.ST[:0] }

// FloatCursor reads the float samples of a block in block order. It keeps one decoded row group in
// memory and belongs to one goroutine. It cannot be used after an error.
type FloatCursor struct {
	groups groups
	hasST  bool
	skip   int64 // rows to be stepped over before the next is read

	ts, st []int64 // of the current row group
	v      []float64
	pos    int // in ts

	ints []int64
	div  []float64
}

// Columns of a FloatCursor.
const (
	floatTS = iota
	floatInt
	floatDiv
	floatST
)

// Floats returns a cursor at the first float sample.
func (r *Reader) Floats() *FloatCursor {
	columns := []column{{segment.ColTS, format.Int64}, {ColInt, format.Int64}, {ColDiv, format.Double}}
	if r.meta.HasST {
		columns = append(columns, column{segment.ColST, format.Int64})
	}
	return &FloatCursor{groups: groups{r: r, files: r.meta.numbered(SamplesFile), columns: columns}, hasST: r.meta.HasST}
}

// Skip steps over the next n samples. Row groups that are skipped as a whole are not read.
func (c *FloatCursor) Skip(n int64) {
	here := min(n, int64(len(c.ts)-c.pos))
	c.pos += int(here)
	c.skip += n - here
}

// Next appends the next n samples to dst. Errors: ErrFormat, also if the block has fewer, and those
// of the Source.
func (c *FloatCursor) Next(n int64, dst *FloatRun) error {
	for n > 0 {
		if err := c.fill(); err != nil {
			return err
		}
		take := int(min(n, int64(len(c.ts)-c.pos)))
		end := c.pos + take
		dst.TS, dst.V = append(dst.TS, c.ts[c.pos:end]...), append(dst.V, c.v[c.pos:end]...)
		if c.hasST {
			dst.ST = append(dst.ST, c.st[c.pos:end]...)
		}
		c.pos = end
		n -= int64(take)
	}
	return nil
}

// fill makes sure that the current row group has a sample left.
func (c *FloatCursor) fill() error {
	for c.pos == len(c.ts) {
		c.ts, c.pos = c.ts[:0], 0
		rows, err := c.groups.seek(&c.skip)
		if err != nil {
			return err
		}
		if err := c.decode(int(rows)); err != nil {
			return err
		}
		c.pos, c.skip = int(c.skip), 0
	}
	return nil
}

// seek skips whole row groups, subtracts their rows from skip, and loads the next row group.
func (g *groups) seek(skip *int64) (rows int64, err error) {
	for {
		rows, err = g.rows()
		if errors.Is(err, errEnd) {
			return 0, fmt.Errorf("%w: its files have fewer rows than were asked for", ErrFormat)
		}
		if rows > *skip {
			return rows, g.load()
		}
		*skip -= rows
		g.pass()
	}
}

// decode decodes the loaded row group.
func (c *FloatCursor) decode(rows int) (err error) {
	if c.ts, err = c.groups.int64s(c.ts[:0], floatTS); err != nil {
		return err
	}
	if c.ints, err = c.groups.int64s(c.ints[:0], floatInt); err != nil {
		return err
	}
	if c.div, err = c.groups.doubles(c.div[:0], floatDiv); err != nil {
		return err
	}
	if c.hasST {
		if c.st, err = c.groups.int64s(c.st[:0], floatST); err != nil {
			return err
		}
	}
	if len(c.ts) != rows || len(c.ints) != rows || len(c.div) != rows || c.hasST && len(c.st) != rows {
		return c.groups.open.fail(fmt.Errorf("%w: columns are not aligned", ErrFormat))
	}
	c.v = DecodeValues(c.v[:0], c.ints, c.div)
	return nil
}
