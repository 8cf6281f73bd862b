package segment

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// TimesOf reads a LIST of times (ms) of some rows, which ascend. counts holds the number of elements
// of each of them. Errors: see Times.
func (c *Columns) TimesOf(col string, rows []uint32) (counts []int, ts []int64, err error) {
	r := rowLists[int64]{
		leaf: c.leaf(col), path: parquetfile.ListPath(col), typ: format.Int64,
		limit: func(*parquetfile.DataPage) int { return parquetfile.MaxPage / 8 }, // see Times
		at:    (*parquetfile.DataPage).Int64sAt,
		all:   func(p *parquetfile.DataPage, dst []int64, n int) ([]int64, error) { return p.Int64s(dst, n, nil) },
	}
	err = r.read(c, rows)
	return r.counts, r.out, err
}

// DoublesOf reads a LIST of doubles of some rows. See TimesOf.
func (c *Columns) DoublesOf(col string, rows []uint32) (counts []int, vals []float64, err error) {
	r := rowLists[float64]{
		leaf: c.leaf(col), path: parquetfile.ListPath(col), typ: format.Double,
		limit: func(p *parquetfile.DataPage) int { return len(p.Values) / 8 },
		at:    parquetfile.WordsAt[float64],
		all:   func(p *parquetfile.DataPage, dst []float64, n int) ([]float64, error) { return p.Doubles(dst, n, nil) },
	}
	err = r.read(c, rows)
	return r.counts, r.out, err
}

// BlobsOf reads a LIST of byte strings of some rows. See TimesOf.
func (c *Columns) BlobsOf(col string, rows []uint32) (counts []int, blobs []string, err error) {
	n, all, err := c.Blobs(col)
	if err != nil {
		return nil, nil, err
	}
	r := rowLists[string]{}
	err = r.choose(n, all, rows, 0)
	return r.counts, r.out, err
}

// rowLists reads the lists of some rows of a column.
type rowLists[T any] struct {
	leaf  int
	path  []string
	typ   format.Type
	limit func(*parquetfile.DataPage) int // see listDecoder.read
	// at appends those of the n elements of a page at positions less first, all appends all of them
	at  func(p *parquetfile.DataPage, dst []T, n int, positions []uint32, first uint32) ([]T, error)
	all func(p *parquetfile.DataPage, dst []T, n int) ([]T, error)

	counts []int
	out    []T
}

// read reads the row groups that have rows.
func (r *rowLists[T]) read(c *Columns, rows []uint32) error {
	if r.leaf < 0 || c.Layout.Leaves[r.leaf].Type != r.typ {
		return fmt.Errorf("%w: no list of %v in column %v", ErrFormat, r.typ, r.path)
	}
	first := uint32(0)
	for i := range c.Layout.Groups {
		end := first + uint32(c.Layout.Groups[i].Rows)
		if wanted := before(rows, end); len(wanted) > 0 {
			rows = rows[len(wanted):]
			if err := r.group(c, i, wanted, first); err != nil {
				return asFormat(err)
			}
		}
		first = end
	}
	if len(rows) > 0 {
		return fmt.Errorf("%w: column %v has %d lists, expected one for row %d", ErrFormat, r.path, first, rows[0])
	}
	return nil
}

// group reads the rows of a row group that begins at row first.
func (r *rowLists[T]) group(c *Columns, i int, rows []uint32, first uint32) error {
	if err := c.load(i, r.leaf); err != nil {
		return err
	}
	if single, err := r.singles(&c.lists, rows, first); single || err != nil {
		return err
	}
	var all []T
	counts, err := c.lists.read(nil, r.path, r.typ, r.limit, func(p *parquetfile.DataPage, n int) (err error) {
		all, err = r.all(p, all, n)
		return err
	})
	if err != nil {
		return err
	}
	return r.choose(counts, all, rows, first)
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

// choose takes the lists of rows. counts holds the lengths of all lists from row first on, all their
// elements.
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
