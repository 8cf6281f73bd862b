package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// Some selects the rows of an object that match one of several lists of matchers, and reads the
// table of these rows alone. It costs less than the whole table, but for one selection only: it is
// for objects whose whole tables have no room in memory.
type Some struct {
	Seed uint64 // of keys
	Sets [][]*labels.Matcher
	Most int // rows that may match
}

// Segment reads some rows of a segment of size bytes. The table is nil if more than s.Most rows
// match. Errors: segment.ErrFormat, those of in, and ctx's once it ends.
func (s Some) Segment(ctx context.Context, in io.ReaderAt, size int64) (*Table, error) {
	t, err := s.segment(ctx, in, size)
	return t, broken(segment.ErrFormat, err)
}

func (s Some) segment(ctx context.Context, in io.ReaderAt, size int64) (*Table, error) {
	columns, err := segment.OpenColumns(in, size)
	if err != nil {
		return nil, err
	}
	defer columns.Release()
	l, err := s.loader(in, columns.Layout)
	if err != nil {
		return nil, err
	}
	defer l.close()
	found, err := s.begin(ctx, l)
	if !found || l.rows == 0 || err != nil {
		return l.partial(found), err
	}
	// Forget the label columns in which no row has a value, if the footer says which.
	runs, err := segment.RunsOf(l.layout.KeyValues, l.labels.columns, l.layout.Rows)
	if err != nil {
		return nil, err
	}
	if runs != nil {
		have := runs.Columns(l.table.some)
		l.wanted = slices.DeleteFunc(slices.Clone(l.labels.sorted), func(x labelLeaf) bool { return x.column >= 0 && !have.Has(x.column) })
	}
	if err := l.identify(); err != nil {
		return nil, err
	}
	l.table.layout = columns.Layout
	return l.table, l.lists(columns)
}

// Block reads some rows of a block's series table of size bytes. m is the block's meta.json. See
// Segment; the error of the format is block.ErrFormat.
func (s Some) Block(ctx context.Context, in io.ReaderAt, size int64, m *block.Meta) (*Table, error) {
	t, err := s.block(ctx, in, size, m)
	return t, broken(block.ErrFormat, err)
}

func (s Some) block(ctx context.Context, in io.ReaderAt, size int64, m *block.Meta) (*Table, error) {
	layout, err := parquetfile.ReadLayout(in, size)
	if err != nil {
		return nil, err
	}
	if layout.Rows != m.Series {
		return nil, fmt.Errorf("%w: %d series, meta.json has %d", errShape, layout.Rows, m.Series)
	}
	l, err := s.loader(in, layout)
	if err != nil {
		return nil, err
	}
	defer l.close()
	found, err := s.begin(ctx, l)
	if !found || l.rows == 0 || err != nil {
		return l.partial(found), err
	}
	if err := l.identify(); err != nil {
		return nil, err
	}
	if l.table.floats, err = l.places(block.ColRowStart, block.ColRowCount, m.Floats); err != nil {
		return nil, err
	}
	if m.Hists > 0 {
		if l.table.hists, err = l.places(block.ColHistStart, block.ColHistCount, m.Hists); err != nil {
			return nil, err
		}
	}
	return l.table, l.times(m.MinT)
}

// loader returns a loader of the rows of a file, which must be closed.
func (s Some) loader(in io.ReaderAt, layout *parquetfile.Layout) (*someLoader, error) {
	own, err := labelsOf(layout)
	if err != nil {
		return nil, err
	}
	l := &someLoader{loader: openLoader(in, layout, s.Seed), labels: own, groups: make([]someGroup, len(layout.Groups)), room: rooms.Get().(*columnRoom)}
	l.picked, l.wanted = make([][]Range, len(layout.Groups)), l.labels.sorted
	l.table.some = []uint32{}
	return l, nil
}

// close lets others have the memory of the loader, in which no table has anything.
func (l *someLoader) close() {
	l.loader.close()
	l.room.release()
	l.room = nil
}

// begin finds the rows. It reports false if too many match.
func (s Some) begin(ctx context.Context, l *someLoader) (found bool, err error) {
	layout := l.layout
	if layout.Rows > maxRows {
		return false, fmt.Errorf("%w: %d series, the limit is %d", parquetfile.ErrFormat, layout.Rows, maxRows)
	}
	first := uint32(0)
	for i := range l.groups {
		g := &l.groups[i]
		var err error
		if g.columns, err = l.mapColumns(i); err != nil {
			return false, err
		}
		for _, ms := range s.Sets {
			rows, err := l.match(ctx, i, ms)
			if err != nil {
				return false, err
			}
			l.picked[i] = Union(l.picked[i], rows)
		}
		if len(l.table.some)+count(l.picked[i]) > s.Most {
			return false, nil
		}
		for _, r := range l.picked[i] {
			for row := r.From; row < r.To; row++ {
				l.table.some = append(l.table.some, first+row)
			}
		}
		if len(l.picked[i]) == 0 {
			g.columns = nil // none of it is read again
		}
		first += uint32(layout.Groups[i].Rows)
	}
	l.rows = len(l.table.some)
	if l.table.rows = l.rows; l.rows > 0 {
		l.table.rowsKey = rowsKey(l.table.some, s.Seed)
	}
	return true, nil
}

// rowsKey returns a key of rows. Different rows have different keys with near certainty, also if a
// sender tries to make them collide.
func rowsKey(rows []uint32, seed uint64) string {
	b := make([]byte, 0, 4*len(rows))
	for _, row := range rows {
		b = binary.LittleEndian.AppendUint32(b, row)
	}
	sum := xxh3.Hash128Seed(b, seed).Bytes()
	return " of rows " + string(sum[:])
}

// partial returns the table of a loader, nil if too many rows match.
func (l *someLoader) partial(found bool) *Table {
	if !found {
		return nil
	}
	return l.table
}

// someLoader reads the rows that match, in the order of the object.
type someLoader struct {
	loader // of as many rows as match
	labels *labelLeaves
	wanted []labelLeaf // of the labels, by name: those that the rows may have
	groups []someGroup
	room   *columnRoom
}

// someGroup is what is known of a row group.
type someGroup struct {
	// of the labels that were read so far, and of all that have no column of their own; only those
	// that are still needed
	columns map[string]*groupColumn
	labels  *parquetfile.GroupReader // of the other labels, once they are read; nil if they are many bytes
}

// match returns the rows of a group that match, counted from its first.
func (l *someLoader) match(ctx context.Context, group int, ms []*labels.Matcher) ([]Range, error) {
	out := []Range{{0, uint32(l.layout.Groups[group].Rows)}}
	for _, m := range selectiveFirst(ms) {
		c, err := l.column(group, m.Name)
		if err != nil {
			return nil, err
		}
		if c == nil {
			if !m.Matches("") {
				return nil, nil
			}
			continue
		}
		wanted, err := c.matching(ctx, m)
		if err != nil {
			return nil, err
		}
		if out, err = c.filter(out, wanted); err != nil {
			return nil, fmt.Errorf("label %s: %w", m.Name, err)
		}
		if len(out) == 0 {
			return nil, nil
		}
	}
	return out, nil
}

// selectiveFirst orders matchers: that of the metric, whose rows are adjacent, then other
// equalities, then the rest.
func selectiveFirst(ms []*labels.Matcher) []*labels.Matcher {
	cost := func(m *labels.Matcher) int {
		switch {
		case m.Type != labels.MatchEqual:
			return 2
		case m.Name != model.MetricNameLabel:
			return 1
		}
		return 0
	}
	out := slices.Clone(ms)
	slices.SortStableFunc(out, func(a, b *labels.Matcher) int { return cost(a) - cost(b) })
	return out
}

// identify reads the labels of the rows.
func (l *someLoader) identify() error {
	l.table.keys = make([]Key, l.rows)
	names := l.names()
	for i := range l.groups {
		if err := l.readLabels(i, names); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := l.add(name); err != nil {
			return err
		}
	}
	return l.sort()
}

// places reads the positions of series in the files of a kind, which have total rows.
func (l *someLoader) places(start, count string, total int64) (s spans, err error) {
	s = spans{from: make([]uint64, l.rows), to: make([]uint64, l.rows)}
	beyond := func(n, at int64) error {
		return fmt.Errorf("%w: %d rows from row %d on, of %d", errShape, n, at, total)
	}
	err = l.int64s(start, func(i int, at int64) error {
		if at < 0 || at > total {
			return beyond(0, at)
		}
		s.from[i] = uint64(at)
		return nil
	})
	if err != nil {
		return s, err
	}
	return s, l.int64s(count, func(i int, n int64) error {
		if at := int64(s.from[i]); n < 0 || n > total-at {
			return beyond(n, at)
		}
		s.to[i] = s.from[i] + uint64(n)
		return nil
	})
}

// Some returns the rows that a partial table knows, ascending, and nil for a table of all rows.
// Callers must not change it.
func (t *Table) Some() []uint32 { return t.some }

// KnownRows returns the rows that a partial table knows, as ascending ranges that do not touch.
func (t *Table) KnownRows() (out []Range) {
	for _, row := range t.some {
		out = join(out, row, row+1)
	}
	return out
}

// WithoutLabels returns a partial table without labels, keys and layout, for those who know the
// series of its rows already.
func (t *Table) WithoutLabels() *Table {
	bare := *t
	bare.names, bare.columns, bare.keys, bare.layout = nil, nil, nil, nil
	return &bare
}
