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

// listType is how lists of a type are read.
type listType[T any] struct {
	typ   format.Type
	limit func(*parquetfile.DataPage) int // see listDecoder.read
	// all appends the n elements of a page
	all func(p *parquetfile.DataPage, dst []T, n int) ([]T, error)
	// at appends those of the n elements of a page at positions less first; nil: it has no such
	// function
	at func(p *parquetfile.DataPage, dst []T, n int, positions []uint32, first uint32) ([]T, error)
}

var (
	timeLists = listType[int64]{
		typ: format.Int64,
		// Levels may claim any number of elements; a page of doubles bounds it.
		limit: func(*parquetfile.DataPage) int { return parquetfile.MaxPage / 8 },
		all:   func(p *parquetfile.DataPage, dst []int64, n int) ([]int64, error) { return p.Int64s(dst, n, nil) },
		at:    (*parquetfile.DataPage).Int64sAt,
	}
	doubleLists = listType[float64]{
		typ:   format.Double,
		limit: func(p *parquetfile.DataPage) int { return len(p.Values) / 8 },
		all:   func(p *parquetfile.DataPage, dst []float64, n int) ([]float64, error) { return p.Doubles(dst, n, nil) },
		at:    parquetfile.WordsAt[float64],
	}
	// The strings own their memory.
	blobLists = listType[string]{
		typ:   format.ByteArray,
		limit: func(p *parquetfile.DataPage) int { return len(p.Values) / 4 },
		all: func(p *parquetfile.DataPage, dst []string, n int) ([]string, error) {
			p.Values = slices.Clone(p.Values)
			return p.Strings(dst, n)
		},
	}
)

// appendLists appends the elements of a LIST or MAP.
func appendLists[T any](l *listDecoder, dst []T, counts []int, path []string, of listType[T]) ([]T, []int, error) {
	counts, err := l.read(counts, path, of.typ, of.limit, func(p *parquetfile.DataPage, n int) (err error) {
		dst, err = of.all(p, dst, n)
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
