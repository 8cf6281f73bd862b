package block

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/segment"
)

// FloatRun is a run of float samples. Times in ms; ST is nil if the block has no start timestamps.
type FloatRun struct {
	TS []int64
	V  []float64
	ST []int64
}

// FloatCursor reads the float samples of a block in block order. It keeps one decoded row group in
// memory and belongs to one goroutine. It cannot be used after an error.
type FloatCursor struct {
	cursor
	hasST bool

	st   []int64 // of the current row group, as the following
	v    []float64
	ints []int64
	div  []float64
}

// Columns of a FloatCursor in addition to cursorTS.
const (
	floatInt = iota + 1
	floatDiv
	floatST
)

// Floats returns a cursor at the first float sample.
func (r *Reader) Floats() *FloatCursor {
	columns := []column{{segment.ColTS, format.Int64}, {ColInt, format.Int64}, {ColDiv, format.Double}}
	if r.meta.HasST {
		columns = append(columns, column{segment.ColST, format.Int64})
	}
	return &FloatCursor{cursor: cursor{groups: groups{r: r, files: r.meta.numbered(SamplesFile), columns: columns}}, hasST: r.meta.HasST}
}

// Next appends the next n samples to dst. Errors: ErrFormat, also if the block has fewer, and those
// of the Source.
func (c *FloatCursor) Next(n int64, dst *FloatRun) error {
	for n > 0 {
		if err := c.fill(c.decode); err != nil {
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

// decode decodes the other columns of the loaded row group.
func (c *FloatCursor) decode() (err error) {
	if c.ints, err = c.groups.int64s(c.ints[:0], floatInt); err != nil {
		return err
	}
	if c.div, err = c.groups.doubles(c.div[:0], floatDiv); err != nil {
		return err
	}
	if err := c.aligned(len(c.ints), len(c.div)); err != nil {
		return err
	}
	c.v = DecodeValues(c.v[:0], c.ints, c.div)
	if !c.hasST {
		return nil
	}
	if c.st, err = c.groups.int64s(c.st[:0], floatST); err != nil {
		return err
	}
	return c.aligned(len(c.st))
}
