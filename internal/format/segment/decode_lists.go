package segment

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// listDecoder reads the LIST columns of a row group.
type listDecoder struct {
	group *parquetfile.GroupReader
	rows  int
	chunk parquetfile.ChunkReader
	// memory for the counts of columns
	counts, others []int
}

func (l *listDecoder) begin(g *parquetfile.GroupReader, rows int) { l.group, l.rows = g, rows }

// has reports whether the file has a LIST of this name.
func (l *listDecoder) has(col string) bool {
	return l.group.Layout.Column(parquetfile.ListPath(col)...) >= 0
}

// read calls values with each page of a column and n, the number of its elements. It returns the
// number of elements of each row in counts. limit returns the largest number of elements that the
// bytes of a page can hold, because levels may claim any number.
func (l *listDecoder) read(counts []int, path []string, typ format.Type, limit func(*parquetfile.DataPage) int, values func(p *parquetfile.DataPage, n int) error) ([]int, error) {
	leaf := l.group.Layout.Column(path...)
	if leaf < 0 || l.group.Layout.Leaves[leaf].Type != typ || !l.group.Layout.Leaves[leaf].Nested {
		return nil, fmt.Errorf("%w: no list of %v in column %v", ErrFormat, typ, path)
	}
	counts = slices.Grow(counts[:0], l.rows)
	err := l.group.Pages(leaf, &l.chunk, func(p *parquetfile.DataPage) (err error) {
		if room := l.rows - len(counts) + limit(p); p.Entries > room {
			return fmt.Errorf("%w: page claims %d entries, has room for %d", ErrFormat, p.Entries, room)
		}
		var n int
		if counts, n, err = p.Lists(counts); err != nil {
			return err
		}
		return values(p, n)
	})
	if err != nil {
		return nil, fmt.Errorf("column %v: %w", path, err)
	}
	if len(counts) != l.rows {
		return nil, fmt.Errorf("%w: column %v has %d lists for %d rows", ErrFormat, path, len(counts), l.rows)
	}
	return counts, nil
}

// doubles appends the elements of a LIST<DOUBLE>.
func (l *listDecoder) doubles(dst []float64, counts []int, col string) ([]float64, []int, error) {
	limit := func(p *parquetfile.DataPage) int { return len(p.Values) / 8 }
	counts, err := l.read(counts, parquetfile.ListPath(col), format.Double, limit, func(p *parquetfile.DataPage, n int) (err error) {
		dst, err = p.Doubles(dst, n, nil)
		return err
	})
	return dst, counts, err
}

// int64s appends the elements of a LIST of integers. Each row must have as many elements as in
// another column: like is that column's counts, total their sum.
func (l *listDecoder) int64s(dst []int64, col string, like []int, total int) ([]int64, error) {
	left := total
	limit := func(*parquetfile.DataPage) int { return left }
	counts, err := l.read(l.others, parquetfile.ListPath(col), format.Int64, limit, func(p *parquetfile.DataPage, n int) (err error) {
		if left -= n; left < 0 {
			return fmt.Errorf("%w: more than %d elements", ErrFormat, total)
		}
		dst, err = p.Int64s(dst, n, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.others = counts
	if !slices.Equal(counts, like) {
		return nil, fmt.Errorf("%w: column %s is not aligned with the others", ErrFormat, col)
	}
	return dst, nil
}

// strings appends the elements of a LIST or MAP of byte strings. The strings own their memory.
func (l *listDecoder) strings(dst []string, counts []int, path []string) ([]string, []int, error) {
	limit := func(p *parquetfile.DataPage) int { return len(p.Values) / 4 }
	counts, err := l.read(counts, path, format.ByteArray, limit, func(p *parquetfile.DataPage, n int) (err error) {
		p.Values = slices.Clone(p.Values)
		dst, err = p.Strings(dst, n)
		return err
	})
	return dst, counts, err
}
