package block

import (
	"math"

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
	rows  FloatReader
	run   FloatRun // the current row group
}

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
		dst.TS, dst.V = append(dst.TS, c.ts[c.pos:end]...), append(dst.V, c.run.V[c.pos:end]...)
		if c.hasST {
			dst.ST = append(dst.ST, c.run.ST[c.pos:end]...)
		}
		c.pos = end
		n -= int64(take)
	}
	return nil
}

// decode decodes the loaded row group.
func (c *FloatCursor) decode(g *RowGroup) error {
	c.run = FloatRun{c.run.TS[:0], c.run.V[:0], c.run.ST[:0]}
	_, err := c.rows.Select(&c.groups.group, g, c.hasST, []Rows{{g.FirstRow, g.Rows}}, math.MinInt64, math.MaxInt64)
	if err == nil {
		err = c.rows.Read(&c.run)
	}
	if err != nil {
		return c.groups.open.fail(err)
	}
	c.ts = c.run.TS
	return nil
}
