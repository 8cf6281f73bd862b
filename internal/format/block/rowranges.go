package block

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sort"
	"unsafe"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Rows are the rows [From, From+N) of the files of one kind, counted over all of them as
// RowGroup.FirstRow is.
type Rows struct{ From, N int64 }

// Leaf columns: positions in RowGroup.Columns.
const (
	leafTS = 2 // in all files whose rows belong to series

	leafInt = 3 // of samples
	leafDiv = 4
	leafST  = 5

	leafHist = 5 // of histograms

	leafExValue  = 3 // of exemplars
	leafExLabels = 4
)

// chunkOf returns where a column chunk lies in its file.
func (g *RowGroup) chunkOf(leaf int) (parquetfile.Span, error) {
	if leaf >= len(g.Columns) {
		return parquetfile.Span{}, fmt.Errorf("%w: row group of %d columns, column %d is asked for", ErrFormat, len(g.Columns), leaf)
	}
	return parquetfile.Span{Offset: g.Columns[leaf][0], Length: g.Columns[leaf][1]}, nil
}

// open begins to read a column chunk of g, whose file is in.
func (g *RowGroup) open(r interface {
	Reset(in io.ReaderAt, s parquetfile.Span, values int64) error
}, in io.ReaderAt, leaf int) error {
	span, err := g.chunkOf(leaf)
	if err == nil {
		err = r.Reset(in, span, g.Rows)
	}
	if err != nil {
		return fmt.Errorf("column %d: %w", leaf, err)
	}
	return nil
}

// timed reads the times of rows of a row group and keeps the rows in a range of time.
type timed struct {
	in    io.ReaderAt
	group *RowGroup
	words parquetfile.WordReader

	own   []int64 // memory for times
	times []int64 // of all ranges, in order; once for neighbours with equal times
	rows  []Rows  // those in the range of time, by the rows asked for: some may be empty
	at    []int   // where in times those of each of rows begin
}

// sel reads the times of rows, which are ascending, disjoint, each of one series, and in g, and
// keeps those within [mint, maxt] (ms). It returns their number.
func (t *timed) sel(in io.ReaderAt, g *RowGroup, rows []Rows, mint, maxt int64) (total int64, err error) {
	t.in, t.group = in, g
	t.times, t.rows, t.at = t.own[:0], t.rows[:0], t.at[:0]
	if g.Rows > maxGroupRows {
		return 0, fmt.Errorf("%w: row group of %d rows, the limit is %d", ErrFormat, g.Rows, maxGroupRows)
	}
	last := 0 // where in times those of the range before begin
	err = t.each(leafTS, rows, func(_ int, r Rows) error {
		at := len(t.times)
		t.times = slices.Grow(t.times, int(r.N))[:at+int(r.N)]
		ts := t.times[at:]
		if err := t.words.Int64s(ts); err != nil {
			return err
		}
		if sameTimes(t.times[last:at], ts) {
			t.times, at = t.times[:at], last
		}
		last = at
		total += t.keep(r, at, ts, mint, maxt)
		return nil
	})
	t.own = t.times
	return total, err
}

// keep keeps the rows of r that are within [mint, maxt] (ms), and returns their number. ts are the
// times of r, which begin at a position in times.
func (t *timed) keep(r Rows, at int, ts []int64, mint, maxt int64) int64 {
	lo, hi := inRange(ts, mint, maxt)
	t.rows = append(t.rows, Rows{r.From + int64(lo), int64(hi - lo)})
	t.at = append(t.at, at+lo)
	return int64(hi - lo)
}

// inRange returns which of the times ts, which ascend, are in [mint, maxt] (ms): those at [lo, hi).
func inRange(ts []int64, mint, maxt int64) (lo, hi int) {
	hi = len(ts)
	if hi > 0 && (ts[0] < mint || ts[hi-1] > maxt) {
		lo = sort.Search(len(ts), func(i int) bool { return ts[i] >= mint })
		hi = lo + sort.Search(len(ts)-lo, func(i int) bool { return ts[lo+i] > maxt })
	}
	return lo, hi
}

// sameTimes reports whether a and b are equal.
func sameTimes(a, b []int64) bool {
	if len(a) != len(b) || len(a) == 0 || a[0] != b[0] {
		return false
	}
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), 8*len(a)), unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), 8*len(b)))
}

// has returns an error unless rows are in the row group, and not before a row.
func (g *RowGroup) has(r Rows, before int64) error {
	if r.From < before || r.N < 0 || r.From+r.N > g.FirstRow+g.Rows {
		return fmt.Errorf("%w: rows %d to %d are not in order or not in the row group", ErrFormat, r.From, r.From+r.N)
	}
	return nil
}

// Times returns the times (ms) of the selected rows of range i. They are valid until the next
// Select.
func (t *timed) Times(i int) []int64 { return t.times[t.at[i] : t.at[i]+int(t.rows[i].N)] }

// each calls read at the rows of one column chunk, range by range; read takes the range's values
// from t.words.
func (t *timed) each(leaf int, rows []Rows, read func(i int, r Rows) error) error {
	span, err := t.group.chunkOf(leaf)
	var pages paged
	byPage := leaf == leafInt && len(t.group.Pages) > 0
	switch {
	case err != nil:
	case byPage:
		dict, first := t.group.pages()
		pages, err = paged{first, &t.words, t.group.FirstRow}, t.words.ResetPages(t.in, dict)
	default:
		err = t.words.Reset(t.in, span, t.group.Rows)
	}
	at, before := t.group.FirstRow, t.group.FirstRow // of the reader, and the end of the range before
	for i := 0; i < len(rows) && err == nil; i++ {
		r := rows[i]
		if err := t.group.has(r, before); err != nil {
			return err
		}
		before = r.From + r.N
		if r.N == 0 {
			err = read(i, r)
			continue
		}
		if byPage {
			at = pages.seek(at, rows[i:])
		}
		if err = t.words.Skip(r.From - at); err == nil {
			err = read(i, r)
		}
		at = before
	}
	if err != nil {
		return fmt.Errorf("column %d: %w", leaf, err)
	}
	return nil
}
