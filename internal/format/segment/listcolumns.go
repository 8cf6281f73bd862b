package segment

import (
	"fmt"
	"io"
	"slices"

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

// Times reads a LIST of times (ms) of some rows, which ascend; nil: of all rows. counts holds the
// number of elements of each of them. Errors: ErrFormat, and those of the reader.
func (c *Columns) Times(col string, rows []uint32) (counts []int, ts []int64, err error) {
	return readRows(c, col, rows, timeLists)
}

// Doubles reads a LIST of doubles as Times does.
func (c *Columns) Doubles(col string, rows []uint32) (counts []int, vals []float64, err error) {
	return readRows(c, col, rows, doubleLists)
}

// Blobs reads a LIST of byte strings as Times does.
func (c *Columns) Blobs(col string, rows []uint32) (counts []int, blobs []string, err error) {
	return readRows(c, col, rows, blobLists)
}

// rowLists are the lists of some rows of a column, as far as they are read.
type rowLists[T any] struct {
	listType[T]
	leaf   int
	path   []string
	counts []int
	out    []T
}

// readRows reads the row groups that have rows.
func readRows[T any](c *Columns, col string, rows []uint32, of listType[T]) ([]int, []T, error) {
	r := rowLists[T]{listType: of, leaf: c.leaf(col), path: parquetfile.ListPath(col)}
	if r.leaf < 0 || c.Layout.Leaves[r.leaf].Type != r.typ {
		return nil, nil, fmt.Errorf("%w: no list of %v in column %v", ErrFormat, r.typ, r.path)
	}
	first := uint32(0)
	for i := range c.Layout.Groups {
		end := first + uint32(c.Layout.Groups[i].Rows)
		wanted := before(rows, end)
		if len(wanted) > 0 || rows == nil {
			if err := r.group(c, i, wanted, first); err != nil {
				return nil, nil, asFormat(err)
			}
		}
		rows, first = rows[len(wanted):], end
	}
	if len(rows) > 0 {
		return nil, nil, fmt.Errorf("%w: column %v has %d lists, expected one for row %d", ErrFormat, r.path, first, rows[0])
	}
	return r.counts, r.out, nil
}

// group reads the rows of a row group that begins at row first; no rows: all of it.
func (r *rowLists[T]) group(c *Columns, i int, rows []uint32, first uint32) error {
	if err := c.load(i, r.leaf); err != nil {
		return err
	}
	if len(rows) > 0 && r.at != nil {
		if single, err := r.singles(&c.lists, rows, first); single || err != nil {
			return err
		}
	}
	var all []T
	if len(rows) == 0 {
		all = r.out
	}
	counts, err := c.lists.read(nil, r.path, r.typ, r.limit, func(p *parquetfile.DataPage, n int) (err error) {
		if len(rows) == 0 {
			all = parquetfile.Room(c.Layout, all, n)
		}
		all, err = r.all(p, all, n)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(rows) > 0:
		return r.choose(counts, all, rows, first)
	case len(r.counts) > 0:
		counts = append(r.counts, counts...)
	}
	r.counts, r.out = counts, all
	return nil
}

// singles reads rows of a row group whose lists have one element each, and nothing else. It reports
// whether the lists of the pages of these rows do; other pages are not decompressed.
func (r *rowLists[T]) singles(l *listDecoder, rows []uint32, first uint32) (single bool, err error) {
	if l.group.Group.Chunks[r.leaf].Values != int64(l.rows) { // a list of several elements has as many values
		return false, nil
	}
	if err := l.group.Chunk(r.leaf, &l.chunk); err != nil {
		return false, err
	}
	var begin uint32 // of a page: its first row
	var of []uint32  // its rows that are wanted
	known := len(r.out)
	single = true
	err = l.chunk.PagesWith(func(from, to int) bool {
		begin, of = first+uint32(from), before(rows, first+uint32(to))
		rows = rows[len(of):]
		return single && len(of) > 0
	}, func(p *parquetfile.DataPage) (err error) {
		if single = p.Singles(); single {
			r.out, err = r.at(p, r.out, p.Entries, of, begin)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("column %v: %w", r.path, err)
	}
	if !single {
		r.out = r.out[:known]
		return false, nil
	}
	for range len(r.out) - known {
		r.counts = append(r.counts, 1)
	}
	return true, nil
}

// choose takes the lists of rows. counts holds the lengths of all lists from row first on, all
// their elements.
func (r *rowLists[T]) choose(counts []int, all []T, rows []uint32, first uint32) error {
	next, at := 0, 0
	for _, row := range rows {
		row := int(row - first)
		if row >= len(counts) {
			return fmt.Errorf("%w: %d lists, expected one for row %d", ErrFormat, len(counts), row)
		}
		for ; next < row; next++ {
			at += counts[next]
		}
		r.counts, r.out = append(r.counts, counts[row]), append(r.out, all[at:at+counts[row]]...)
	}
	return nil
}

// before returns those of ascending rows that are less than end.
func before(rows []uint32, end uint32) []uint32 {
	n, _ := slices.BinarySearch(rows, end)
	return rows[:n]
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
