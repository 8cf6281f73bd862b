package index

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/recent"
)

// LoadBlock reads a block's series table of size bytes. m is the block's meta.json. seed is the
// seed of keys. Errors: block.ErrFormat, and those of in.
func LoadBlock(in io.ReaderAt, size int64, m *block.Meta, seed uint64) (*Table, error) {
	t, err := loadBlock(in, size, m, seed)
	return t, broken(block.ErrFormat, err)
}

// broken wraps an error about an object's bytes in the given format error.
func broken(format, err error) error {
	if err != nil && !errors.Is(err, format) && (errors.Is(err, parquetfile.ErrFormat) || errors.Is(err, errShape)) {
		return fmt.Errorf("%w: %w", format, err)
	}
	return err
}

func loadBlock(in io.ReaderAt, size int64, m *block.Meta, seed uint64) (*Table, error) {
	layout, err := parquetfile.ReadLayout(in, size)
	if err != nil {
		return nil, err
	}
	l, err := newLoader(in, layout, seed)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if int64(l.rows) != m.Series {
		return nil, fmt.Errorf("%w: %d series, meta.json has %d", errShape, l.rows, m.Series)
	}
	l.table.keys = make([]Key, l.rows)
	if err := l.labels(); err != nil {
		return nil, err
	}
	t := l.table
	if t.floats, err = l.places(block.ColRowStart, block.ColRowCount, m.Floats); err != nil {
		return nil, err
	}
	if m.Hists > 0 {
		if t.hists, err = l.places(block.ColHistStart, block.ColHistCount, m.Hists); err != nil {
			return nil, err
		}
	}
	if m.Exemplars > 0 {
		if t.exs, err = l.counts(block.ColExCount, m.Exemplars); err != nil {
			return nil, err
		}
	}
	return t, l.times(m.MinT)
}

// places reads the positions of series in the files of a kind, which have total rows.
func (l *loader) places(start, count string, total int64) (spans, error) {
	s, err := l.counts(count, total)
	if err != nil {
		return s, err
	}
	return s, l.int64s(start, func(i int, at int64) error {
		if first, _ := s.of(i); at != first {
			return fmt.Errorf("%w: the first row of series %d is %d, the series before it have %d rows", errShape, i, at, first)
		}
		return nil
	})
}

// counts reads the numbers of rows of series, which follow one another. The sum of all is total.
func (l *loader) counts(name string, total int64) (s spans, err error) {
	at := int64(0)
	var wide []uint64
	if total > math.MaxUint32 {
		wide = make([]uint64, 1, l.rows+1)
	} else {
		s.ends = make([]uint32, 1, l.rows+1)
	}
	err = l.int64s(name, func(i int, n int64) error {
		if n < 0 || n > total-at {
			return fmt.Errorf("%w: series %d has %d rows", errShape, i, n)
		}
		if at += n; wide != nil {
			wide = append(wide, uint64(at))
		} else {
			s.ends = append(s.ends, uint32(at))
		}
		return nil
	})
	if err == nil && at != total {
		err = fmt.Errorf("%w: %s has the sum %d, meta.json has %d", errShape, name, at, total)
	}
	if wide != nil {
		s = running(wide)
	}
	return s, err
}

// times reads the first and last times of series. No time is before base (ms).
func (l *loader) times(base int64) error {
	b := newBounds(base, l.rows)
	within := func(t int64) error {
		if t < base || t-base >= math.MaxUint32 {
			return fmt.Errorf("%w: time %d ms in an object that begins at %d ms", errShape, t, base)
		}
		return nil
	}
	err := l.int64s(block.ColMinTS, func(i int, t int64) error {
		b.from[i] = uint32(t - base)
		return within(t)
	})
	if err == nil {
		err = l.int64s(block.ColMaxTS, func(i int, t int64) error {
			b.upto[i] = uint32(t - base)
			return within(t)
		})
	}
	b.store(l.table)
	return err
}

// bounds collects the first and last times of rows.
type bounds struct {
	base       int64
	from, upto []uint32
}

func newBounds(base int64, rows int) *bounds {
	return &bounds{base: base, from: slices.Repeat([]uint32{math.MaxUint32}, rows), upto: make([]uint32, rows)}
}

// see extends the times of a row. An object covers a day at most, so 32 bits (49 days) are enough.
func (b *bounds) see(row int, first, last int64) error {
	if first < b.base || last-b.base >= math.MaxUint32 {
		return fmt.Errorf("%w: times from %d to %d ms in an object that begins at %d ms", errShape, first, last, b.base)
	}
	b.from[row], b.upto[row] = min(b.from[row], uint32(first-b.base)), max(b.upto[row], uint32(max(last-b.base, 0)))
	return nil
}

func (b *bounds) store(t *Table) {
	if slices.Equal(b.from, b.upto) { // as after a scrape
		b.upto = b.from
	}
	t.base, t.from, t.upto = b.base, b.from, b.upto
}

// LoadSegment reads the series of a segment of size bytes. seed is the seed of keys. known is the
// content of the segment, nil if it is not in memory. Errors: segment.ErrFormat, and those of in.
func LoadSegment(in io.ReaderAt, size int64, seed uint64, known *recent.Segment) (*Table, error) {
	t, err := loadSegment(in, size, seed, known)
	return t, broken(segment.ErrFormat, err)
}

func loadSegment(in io.ReaderAt, size int64, seed uint64, known *recent.Segment) (*Table, error) {
	columns, err := segment.OpenColumns(in, size)
	if err != nil {
		return nil, err
	}
	defer columns.Release()
	var l *loader
	if known != nil {
		k := openLoader(in, columns.Layout, seed)
		k.rows = len(known.Rows)
		k.table.rows = k.rows
		k.table.base, k.table.near = known.Scraped()
		l = &k
	} else if l, err = newLoader(in, columns.Layout, seed); err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.labels(); err != nil {
		return nil, err
	}
	if t := l.table; t.near != nil {
		t.floats = spans{n: l.rows}
		return t, nil
	}
	return l.table, l.lists(columns)
}

// lists reads the number of samples of each row of a segment, and their first and last times. Those
// of exemplars are for tables of all rows.
func (l *loader) lists(columns *segment.Columns) error {
	t := l.table
	var all [][]int64
	var each [][]int
	alone := true // no row has histograms or exemplars
	for _, c := range []struct {
		name  string
		spans *spans
	}{{segment.ColTS, &t.floats}, {segment.ColHistTS, &t.hists}, {segment.ColExTS, &t.exs}} {
		if c.name != segment.ColTS {
			if !columns.Has(c.name) {
				continue
			}
			alone = false
		}
		if c.spans == &t.exs && t.some != nil {
			continue
		}
		counts, ts, err := columns.Times(c.name, t.some)
		if err != nil {
			return err
		}
		*c.spans = runningOf(counts)
		all, each = append(all, ts), append(each, counts)
	}
	base := int64(math.MaxInt64)
	for i, counts := range each {
		if len(counts) != l.rows {
			return fmt.Errorf("%w: %d lists of times for %d series", errShape, len(counts), l.rows)
		}
		for _, t := range all[i] {
			base = min(base, t)
		}
	}
	if alone && t.floats.n == l.rows { // as after a scrape
		if t.near = nearOf(all[0], base); t.near != nil {
			t.base = base
			return nil
		}
	}
	b := newBounds(base, l.rows)
	for i, counts := range each {
		ts := all[i]
		for row, n := range counts {
			if n > 0 {
				if err := b.see(row, ts[0], ts[n-1]); err != nil {
					return err
				}
				ts = ts[n:]
			}
		}
	}
	b.store(t)
	return nil
}

// nearOf returns times (ms), of which base is the first, as ms after it; nil if they do not fit.
func nearOf(ts []int64, base int64) []uint16 {
	out := make([]uint16, len(ts))
	for i, t := range ts {
		if t-base > math.MaxUint16 {
			return nil
		}
		out[i] = uint16(t - base)
	}
	return out
}
