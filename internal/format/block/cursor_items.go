package block

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/segment"
)

// cursor iterates over the rows of the files of one kind, whose first column is a time.
type cursor struct {
	groups groups
	skip   int64   // rows to be stepped over before the next is read
	ts     []int64 // of the current row group
	pos    int     // in ts
}

// Skip steps over the next n rows. Row groups that are skipped as a whole are not read.
func (c *cursor) Skip(n int64) {
	here := min(n, int64(len(c.ts)-c.pos))
	c.pos += int(here)
	c.skip += n - here
}

// fill loads the next row group if the current one has no row left, and then calls decode, which
// reads its columns.
func (c *cursor) fill(decode func(g *RowGroup) error) error {
	for c.pos == len(c.ts) {
		c.ts, c.pos = c.ts[:0], 0
		g, err := c.seek()
		if err != nil {
			return err
		}
		if err := decode(g); err != nil {
			return err
		}
		if int64(len(c.ts)) != g.Rows {
			return c.groups.open.fail(fmt.Errorf("%w: column of %d times for %d rows", ErrFormat, len(c.ts), g.Rows))
		}
		c.pos, c.skip = int(c.skip), 0
	}
	return nil
}

// seek skips whole row groups, subtracts their rows from skip, and loads the next row group.
func (c *cursor) seek() (*RowGroup, error) {
	for {
		g, err := c.groups.next()
		if errors.Is(err, errEnd) {
			return nil, fmt.Errorf("%w: its files have fewer rows than were asked for", ErrFormat)
		}
		if g.Rows > c.skip {
			return g, c.groups.load()
		}
		c.skip -= g.Rows
		c.groups.at++
	}
}

// aligned refuses another column of the row group that does not have a value for every time.
func (c *cursor) aligned(values int) error {
	if values != len(c.ts) {
		return c.groups.open.fail(fmt.Errorf("%w: columns are not aligned", ErrFormat))
	}
	return nil
}

// items reads rows of a time and a byte string. The cursors of histograms and exemplars use it.
type items struct {
	cursor
	blobs []string
}

// Columns of items.
const (
	itemTS = iota
	itemBlob
	itemValue
)

func (c *items) decode(*RowGroup) (err error) {
	if c.ts, err = c.groups.int64s(c.ts, itemTS); err != nil {
		return err
	}
	if c.blobs, err = c.groups.blobs(c.blobs[:0], itemBlob); err != nil {
		return err
	}
	return c.aligned(len(c.blobs))
}

// HistCursor reads the native histograms of a block in block order. It keeps one row group in
// memory and belongs to one goroutine. It cannot be used after an error.
type HistCursor struct{ items }

// Hists returns a cursor at the first native histogram.
func (r *Reader) Hists() *HistCursor {
	return &HistCursor{items{cursor: cursor{groups: groups{
		r: r, files: r.meta.numbered(HistogramsFile), columns: []column{{segment.ColTS, format.Int64}, {segment.ColHist, format.ByteArray}},
	}}}}
}

// Next appends the next n histograms to dst. Errors: ErrFormat, also if the block has fewer, and
// those of the Source.
func (c *HistCursor) Next(n int64, dst []segment.Hist) ([]segment.Hist, error) {
	for ; n > 0; n-- {
		if err := c.fill(c.decode); err != nil {
			return nil, err
		}
		blob := c.blobs[c.pos]
		h, err := segment.DecodeHist(unsafe.Slice(unsafe.StringData(blob), len(blob)))
		if err == nil && h.T != c.ts[c.pos] {
			err = fmt.Errorf("histogram of the row at %d ms has the timestamp %d ms", c.ts[c.pos], h.T)
		}
		if err != nil {
			return nil, c.groups.open.fail(fmt.Errorf("%w: %w", ErrFormat, err))
		}
		dst = append(dst, h)
		c.pos++
	}
	return dst, nil
}

// ExemplarCursor reads the exemplars of a block in block order. It keeps one row group in memory
// and belongs to one goroutine. It cannot be used after an error.
type ExemplarCursor struct {
	items
	values []float64
}

// Exemplars returns a cursor at the first exemplar.
func (r *Reader) Exemplars() *ExemplarCursor {
	return &ExemplarCursor{items: items{cursor: cursor{groups: groups{
		r: r, files: r.meta.one(ExemplarsFile),
		columns: []column{{segment.ColTS, format.Int64}, {segment.ColLabels, format.ByteArray}, {segment.ColValue, format.Double}},
	}}}}
}

// Next appends the next n exemplars to dst. Errors: ErrFormat, also if the block has fewer, and
// those of the Source.
func (c *ExemplarCursor) Next(n int64, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	for ; n > 0; n-- {
		if err := c.fill(c.decode); err != nil {
			return nil, err
		}
		l, err := segment.DecodeExemplarLabels([]byte(c.blobs[c.pos]))
		if err != nil {
			return nil, c.groups.open.fail(fmt.Errorf("%w: %w", ErrFormat, err))
		}
		dst = append(dst, exemplar.Exemplar{Labels: l, Value: c.values[c.pos], Ts: c.ts[c.pos], HasTs: true})
		c.pos++
	}
	return dst, nil
}

func (c *ExemplarCursor) decode(g *RowGroup) (err error) {
	if err := c.items.decode(g); err != nil {
		return err
	}
	if c.values, err = c.groups.doubles(c.values[:0], itemValue); err != nil {
		return err
	}
	return c.aligned(len(c.values))
}

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
