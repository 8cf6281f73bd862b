package segment

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Columns reads single columns of a segment. It keeps only the footer in memory, and is not safe
// for concurrent use.
type Columns struct {
	Layout *parquetfile.Layout

	in     io.ReaderAt
	memory *parquetfile.Memory
	lists  listDecoder
}

// OpenColumns reads the footer of a segment of size bytes. Errors: ErrFormat, and those of in.
func OpenColumns(in io.ReaderAt, size int64) (*Columns, error) {
	l, err := parquetfile.ReadLayout(in, size)
	if err != nil {
		return nil, asFormat(err)
	}
	if err := checkVersion(l.KeyValues); err != nil {
		return nil, err
	}
	return NewColumns(in, l), nil
}

// NewColumns is OpenColumns for a segment whose footer was read by it before.
func NewColumns(in io.ReaderAt, l *parquetfile.Layout) *Columns {
	m := parquetfile.TakeMemory()
	return &Columns{Layout: l, in: in, memory: m, lists: listDecoder{chunk: m.Chunk}}
}

// Release ends the reading of columns, so that others can use its memory. What was read stays valid.
func (c *Columns) Release() {
	c.memory.Chunk = c.lists.chunk
	c.memory.Release()
}

// Has reports whether the segment has a LIST of this name.
func (c *Columns) Has(col string) bool { return c.leaf(col) >= 0 }

func (c *Columns) leaf(col string) int { return c.Layout.Column(parquetfile.ListPath(col)...) }

// Times reads a LIST of times (ms). counts holds the number of elements of each row. Errors:
// ErrFormat, and those of the reader.
func (c *Columns) Times(col string) (counts []int, ts []int64, err error) {
	// Levels may claim any number of elements; a page of doubles bounds it.
	limit := func(*parquetfile.DataPage) int { return parquetfile.MaxPage / 8 }
	counts, err = c.each(col, format.Int64, limit, func(p *parquetfile.DataPage, n int) (err error) {
		ts, err = p.Int64s(parquetfile.Room(c.Layout, ts, n), n, nil)
		return err
	})
	return counts, ts, err
}

// Doubles reads a LIST of doubles. counts and errors: see Times.
func (c *Columns) Doubles(col string) (counts []int, vals []float64, err error) {
	limit := func(p *parquetfile.DataPage) int { return len(p.Values) / 8 }
	counts, err = c.each(col, format.Double, limit, func(p *parquetfile.DataPage, n int) (err error) {
		vals, err = p.Doubles(parquetfile.Room(c.Layout, vals, n), n, nil)
		return err
	})
	return counts, vals, err
}

// Blobs reads a LIST of byte strings. counts and errors: see Times.
func (c *Columns) Blobs(col string) (counts []int, blobs []string, err error) {
	err = c.groups(col, func() error {
		var n []int
		if blobs, n, err = c.lists.strings(blobs, nil, parquetfile.ListPath(col)); err == nil {
			counts = appended(counts, n)
		}
		return err
	})
	return counts, blobs, err
}

// each reads the pages of a LIST in all row groups.
func (c *Columns) each(col string, typ format.Type, limit func(*parquetfile.DataPage) int, values func(p *parquetfile.DataPage, n int) error) (counts []int, err error) {
	err = c.groups(col, func() error {
		n, err := c.lists.read(nil, parquetfile.ListPath(col), typ, limit, values)
		counts = appended(counts, n)
		return err
	})
	return counts, err
}

// appended appends b, which is b itself if there is nothing before it, as in segments of one row
// group.
func appended(a, b []int) []int {
	if len(a) == 0 {
		return b
	}
	return append(a, b...)
}

// groups calls read for every row group, after loading the column.
func (c *Columns) groups(col string, read func() error) error {
	leaf := c.leaf(col)
	if leaf < 0 {
		return fmt.Errorf("%w: no list %s", ErrFormat, col)
	}
	for i := range c.Layout.Groups {
		if err := c.load(i, leaf); err != nil {
			return err
		}
		if err := read(); err != nil {
			return asFormat(err)
		}
	}
	return nil
}

// load loads a column of a row group.
func (c *Columns) load(group, leaf int) error {
	g, err := c.Layout.Read(group, c.in, c.memory.Buffer, []int{leaf})
	if err != nil {
		return err
	}
	c.memory.Buffer = g.Buffer()
	c.lists.begin(&g, int(g.Group.Rows))
	return nil
}
