package index

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// errShape reports columns that contradict each other or meta.json.
var errShape = errors.New("columns of series do not fit together")

// loader reads the columns that identify series, one at a time, each over all row groups.
type loader struct {
	in     io.ReaderAt
	layout *parquetfile.Layout
	seed   uint64
	rows   int
	picked [][]Range // by row group, counted from its first row: the rows that are read; nil: all
	table  *Table

	memory  *parquetfile.Memory
	builder *builder
	page    []int64 // memory for the values of a page
}

var builders = sync.Pool{New: func() any { return new(builder) }}

// keptValues and keptRuns bound what is kept of the memory of a builder.
const (
	keptValues = 256 << 10
	keptRuns   = 512 << 10
)

// openLoader returns a loader of an empty table, which must be closed.
func openLoader(in io.ReaderAt, layout *parquetfile.Layout, seed uint64) loader {
	return loader{in: in, layout: layout, seed: seed, table: &Table{}, memory: parquetfile.TakeMemory(), builder: builders.Get().(*builder)}
}

// close lets others have the memory of the loader.
func (l *loader) close() {
	l.memory.Release()
	b := l.builder
	b.reset()
	if cap(b.values) <= keptValues && cap(b.runs) <= keptRuns {
		builders.Put(b)
	}
	l.memory, l.builder = nil, nil
}

// maxRows bounds the series of an object.
const maxRows = 1 << 31

func newLoader(in io.ReaderAt, layout *parquetfile.Layout, seed uint64) (*loader, error) {
	l := openLoader(in, layout, seed)
	// IDs are read first: they take eight bytes per row, so no other column can claim more rows
	// than exist.
	if err := l.ids(); err != nil {
		return nil, fmt.Errorf("column %s: %w", segment.ColSeriesID, err)
	}
	if l.rows = len(l.table.ids); l.rows > maxRows {
		return nil, fmt.Errorf("%w: %d series, the limit is %d", parquetfile.ErrFormat, l.rows, maxRows)
	}
	l.table.rows = l.rows
	return &l, nil
}

// pages calls visit for every page of a leaf column in all row groups with rows that are read.
// begin, if not nil, is called before the first page of each group.
func (l *loader) pages(leaf int, begin func(group int) error, visit func(*parquetfile.DataPage) error) error {
	for i := range l.layout.Groups {
		if l.picked != nil && len(l.picked[i]) == 0 {
			continue
		}
		g, err := l.layout.Read(i, l.in, l.memory.Buffer, []int{leaf})
		if err != nil {
			return err
		}
		l.memory.Buffer = g.Buffer()
		if err := g.Chunk(leaf, &l.memory.Chunk); err != nil {
			return err
		}
		if begin != nil {
			if err := begin(i); err != nil {
				return err
			}
		}
		if err := l.memory.Chunk.Pages(visit); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) ids() error {
	leaf := l.layout.Column(segment.ColSeriesID)
	if leaf < 0 || l.layout.Leaves[leaf].Type != format.Int64 {
		return fmt.Errorf("%w: the column is missing", parquetfile.ErrFormat)
	}
	return l.pages(leaf, nil, func(p *parquetfile.DataPage) (err error) {
		l.table.ids, err = p.Uint64s(parquetfile.Room(l.layout, l.table.ids, p.Entries))
		return err
	})
}

// labels reads the label columns and the labels MAP.
func (l *loader) labels() error {
	own, err := labelsOf(l.layout)
	if err != nil {
		return err
	}
	for _, x := range own.sorted {
		if err := l.column(x.leaf, x.name); err != nil {
			return fmt.Errorf("column %s: %w", l.layout.Leaves[x.leaf].Path[0], err)
		}
	}
	byName, err := l.mapped()
	if err != nil {
		return fmt.Errorf("column %s: %w", segment.ColLabels, err)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		l.builder.reset()
		if err := l.builder.spread(name, byName[name], l.rows); err != nil {
			return fmt.Errorf("column %s: %w", segment.ColLabels, err)
		}
		if err := l.finish(name); err != nil {
			return fmt.Errorf("column %s: %w", segment.ColLabels, err)
		}
	}
	return l.sort()
}

// column reads the column of a label.
func (l *loader) column(leaf int, name string) error {
	b := l.builder
	b.reset()
	// offset and length of the row group's dictionary in the builder's values
	first, entries := 0, 0
	begin := func(int) (err error) {
		first = len(b.values)
		// it may alias the buffer that the next row group is read into
		l.memory.Chunk.Dict = slices.Clone(l.memory.Chunk.Dict)
		b.values, err = l.memory.Chunk.Strings(b.values)
		entries = len(b.values) - first
		return err
	}
	err := l.pages(leaf, begin, func(p *parquetfile.DataPage) error {
		if int(b.rows)+p.Entries > l.rows {
			return fmt.Errorf("%w: more than %d rows", parquetfile.ErrFormat, l.rows)
		}
		return p.Runs(p.Entries, entries, func(r parquetfile.Run) { b.add(first+r.Index, r.N) })
	})
	if err != nil {
		return err
	}
	return l.finish(name)
}

// finish adds the column that the builder holds to the table.
func (l *loader) finish(name string) error {
	if int(l.builder.rows) != l.rows {
		return fmt.Errorf("%w: %w: %d rows for %d series", parquetfile.ErrFormat, errShape, l.builder.rows, l.rows)
	}
	c, err := l.builder.column(name, l.seed, l.table.keys)
	if err != nil {
		return err
	}
	if c.dict.len() > 1 || c.dict.len() == 1 && c.dict.value(0) != "" {
		l.table.names, l.table.columns = append(l.table.names, strings.Clone(name)), append(l.table.columns, c)
	}
	return nil
}

// sort sorts the columns by name and checks that names are distinct.
func (l *loader) sort() error {
	t := l.table
	order := make([]int, len(t.names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(t.names[i], t.names[j]) })
	names, columns := make([]string, len(order)), make([]column, len(order))
	for k, i := range order {
		names[k], columns[k] = t.names[i], t.columns[i]
		if k > 0 && names[k] == names[k-1] {
			return fmt.Errorf("%w: %w: label %q has two columns", parquetfile.ErrFormat, errShape, names[k])
		}
	}
	t.names, t.columns = names, columns
	return nil
}

// int64s calls visit with each value of a flat column of integers, for the rows that are read. At
// no time are all of them in memory: an object may have millions of rows.
func (l *loader) int64s(name string, visit func(row int, v int64) error) error {
	leaf := l.layout.Column(name)
	if leaf < 0 || l.layout.Leaves[leaf].Type != format.Int64 || l.layout.Leaves[leaf].Nested {
		return fmt.Errorf("%w: there is no integer column %s", parquetfile.ErrFormat, name)
	}
	row, first := 0, uint32(0) // first: row of a page in its group
	var dict []int64
	rows := []Range{{0, math.MaxUint32}}
	begin := func(group int) (err error) {
		if first = 0; l.picked != nil {
			rows = l.picked[group]
		}
		dict, err = l.memory.Chunk.Int64s()
		return err
	}
	err := l.pages(leaf, begin, func(p *parquetfile.DataPage) (err error) {
		if l.page, err = p.Int64s(l.page[:0], p.Entries, dict); err != nil {
			return err
		}
		for _, r := range rows {
			for at := max(r.From, first); at < min(r.To, first+uint32(p.Entries)); at++ {
				if row == l.rows {
					return fmt.Errorf("%w: more than %d rows", parquetfile.ErrFormat, l.rows)
				}
				if err := visit(row, l.page[at-first]); err != nil {
					return err
				}
				row++
			}
		}
		first += uint32(p.Entries)
		return nil
	})
	if err == nil && row != l.rows {
		err = fmt.Errorf("%w: %w: %d rows for %d series", parquetfile.ErrFormat, errShape, row, l.rows)
	}
	if err != nil {
		return fmt.Errorf("column %s: %w", name, err)
	}
	return nil
}
