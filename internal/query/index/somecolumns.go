package index

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// groupColumn is the column of a label in a row group, as the file has it.
type groupColumn struct {
	values []string // in the order of the dictionary
	pages  []codePage
	runs   []valueRun // of all rows of the group; instead of pages, for labels of the MAP
}

// codePage is a page of a column. codes stands at its first row.
type codePage struct {
	from, to uint32
	codes    parquetfile.IndexCursor
}

// column returns the column of a label in a row group, nil if no series of the group has it.
func (l *someLoader) column(group int, name string) (c *groupColumn, err error) {
	columns := l.groups[group].columns
	if c, ok := columns[name]; ok {
		return c, nil
	}
	leaf, ok := l.labels.byName[name]
	if !ok {
		return nil, nil // the names of the MAP are among the columns
	}
	if c, err = l.read(group, leaf); err != nil {
		return nil, fmt.Errorf("label %s: %w", name, err)
	}
	columns[name] = c
	return c, nil
}

// maxAtOnce bounds the bytes of the label columns of a row group that are read at once.
const maxAtOnce = 1 << 20

// readLabels reads the columns of labels that are left of a row group with rows, which lie together,
// at once.
func (l *someLoader) readLabels(group int, names []string) error {
	g := &l.groups[group]
	if len(l.picked[group]) == 0 {
		return nil
	}
	var leaves []int
	from, to := int64(math.MaxInt64), int64(0)
	for _, name := range names {
		leaf, ok := l.labels.byName[name]
		if _, known := g.columns[name]; ok && !known {
			s := l.layout.Groups[group].Chunks[leaf].Span
			from, to = min(from, s.Offset), max(to, s.Offset+s.Length)
			leaves = append(leaves, leaf)
		}
	}
	if to-from > maxAtOnce {
		return nil
	}
	read, err := l.layout.Read(group, l.in, l.room.take(int(max(0, to-from))), leaves)
	g.labels = &read
	return err
}

// read reads the column of a leaf in a row group.
func (l *someLoader) read(group, leaf int) (*groupColumn, error) {
	g := l.groups[group].labels
	if g == nil {
		read, err := l.layout.Read(group, l.in, l.memory.Buffer, []int{leaf})
		if err != nil {
			return nil, err
		}
		l.memory.Buffer, g = read.Buffer(), &read
	}
	chunk := &l.memory.Chunk
	chunk.Room = l.room.free()
	err := g.Chunk(leaf, chunk)
	if err != nil {
		return nil, err
	}
	chunk.Dict = l.room.keep(chunk.Dict) // it may alias the buffer
	c := &groupColumn{}
	if c.values, err = chunk.Strings(l.room.strings(chunk)); err != nil {
		return nil, err
	}
	rows := uint32(0)
	err = chunk.Pages(func(p *parquetfile.DataPage) error {
		p.Values = l.room.keep(p.Values) // the next page takes its memory
		codes, err := p.Indexes(p.Entries, len(c.values))
		c.pages = append(c.pages, codePage{rows, rows + uint32(p.Entries), codes})
		rows += uint32(p.Entries)
		return err
	})
	if err == nil && int64(rows) != g.Group.Rows {
		err = fmt.Errorf("%w: %w: %d labels of %d series", parquetfile.ErrFormat, errShape, rows, g.Group.Rows)
	}
	return c, err
}

// mapColumns returns the columns of the names in the labels MAP of a row group.
func (l *someLoader) mapColumns(group int) (map[string]*groupColumn, error) {
	one := loader{in: l.in, layout: &parquetfile.Layout{Leaves: l.layout.Leaves, Groups: l.layout.Groups[group : group+1]}, memory: l.memory}
	one.rows = int(one.layout.Groups[0].Rows)
	byName, err := one.mapped()
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", segment.ColLabels, err)
	}
	columns := make(map[string]*groupColumn, len(byName)+2)
	for name, entries := range byName {
		b := builder{}
		b.reset()
		if err := b.spread(name, entries, one.rows); err != nil {
			return nil, err
		}
		columns[name] = &groupColumn{values: b.values, runs: b.runs}
	}
	return columns, nil
}

// names returns the names of the labels that the rows' series may have.
func (l *someLoader) names() []string {
	out := make([]string, len(l.wanted))
	for i := range l.wanted {
		out[i] = l.wanted[i].name
	}
	n := len(out)
	for i := range l.groups {
		for name := range l.groups[i].columns {
			if _, own := l.labels.byName[name]; !own {
				out = append(out, name) // of the MAP
			}
		}
	}
	if len(out) > n {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// add adds the column of a label to the table.
func (l *someLoader) add(name string) error {
	b := l.builder
	b.reset()
	for i := range l.groups {
		if len(l.picked[i]) == 0 {
			continue
		}
		c, err := l.column(i, name)
		if err != nil {
			return err
		}
		if c == nil {
			b.fill(int(b.rows) + count(l.picked[i]))
			continue
		}
		if err := c.pick(b, l.picked[i], l.room); err != nil {
			return fmt.Errorf("label %s: %w", name, err)
		}
		delete(l.groups[i].columns, name) // no name is read twice
	}
	return l.finish(name)
}

// pick appends the values of rows to a builder.
func (c *groupColumn) pick(b *builder, rows []Range, room *columnRoom) error {
	known := room.positions(len(c.values)) // in b.values, plus one
	return c.each(rows, func(r Range, value int) {
		if known[value] == 0 {
			b.values = append(b.values, c.values[value])
			known[value] = int32(len(b.values))
		}
		b.add(int(known[value]-1), int(r.To-r.From))
	})
}

// matching reports which values match. It returns ctx's error once ctx ends.
func (c *groupColumn) matching(ctx context.Context, m *labels.Matcher) ([]bool, error) {
	out := make([]bool, len(c.values))
	for i, v := range c.values {
		if i%valuesAtOnce == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("match values of label %s: %w", m.Name, ctx.Err())
		}
		out[i] = m.Matches(v)
	}
	return out, nil
}

// filter returns those of rows whose values are wanted.
func (c *groupColumn) filter(rows []Range, wanted []bool) (out []Range, err error) {
	err = c.each(rows, func(r Range, value int) {
		if wanted[value] {
			out = join(out, r.From, r.To)
		}
	})
	return out, err
}

// each calls visit for pieces of rows that have one value each, in order.
func (c *groupColumn) each(rows []Range, visit func(r Range, value int)) error {
	if c.pages == nil {
		run := 0
		for _, r := range rows {
			run += sort.Search(len(c.runs)-run, func(i int) bool { return c.runs[run+i].end > r.From })
			for from := r.From; from < r.To; run++ {
				to := min(r.To, c.runs[run].end)
				visit(Range{from, to}, int(c.runs[run].value))
				if from = to; c.runs[run].end > to {
					break
				}
			}
		}
		return nil
	}
	for _, p := range c.pages {
		for _, r := range rows {
			from, to := max(r.From, p.from), min(r.To, p.to)
			if from >= to {
				continue
			}
			at := from
			err := p.codes.Runs(int(from-p.from), int(to-p.from), func(x parquetfile.Run) {
				visit(Range{at, at + uint32(x.N)}, x.Index)
				at += uint32(x.N)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// count returns the number of rows of ranges.
func count(rows []Range) (n int) {
	for _, r := range rows {
		n += int(r.To - r.From)
	}
	return n
}
