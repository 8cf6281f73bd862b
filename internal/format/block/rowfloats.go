package block

import (
	"fmt"
	"io"
	"math"
	"slices"
	"unsafe"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// FloatReader reads the samples of some rows of a row group. It needs the row group's entry in
// meta.json, and no footer, and decompresses no page without a wanted row. The zero value is ready.
// It keeps its buffers and belongs to one goroutine.
type FloatReader struct {
	timed
	st    bool
	frame *Frame // nil: times and divisors are read from the file
	divs  parquetfile.WordReader
	div   []float64
}

// Select reads the times of rows, which are ascending, disjoint, each of one series, and in g, and
// keeps those within [mint, maxt] (ms). It returns their number, which Read will append. in is the
// row group's file; st means that it has start timestamps. Errors: ErrFormat,
// parquetfile.ErrFormat, and those of in.
func (f *FloatReader) Select(in io.ReaderAt, g *RowGroup, st bool, rows []Rows, mint, maxt int64) (int64, error) {
	f.st, f.frame = st, nil
	return f.sel(in, g, rows, mint, maxt)
}

// SelectFramed is Select for files without start timestamps, or for reads that do not need them. It
// takes the times and the divisors from the frame of g, which is not empty.
func (f *FloatReader) SelectFramed(in io.ReaderAt, g *RowGroup, x *Frame, rows []Rows, mint, maxt int64) (total int64, err error) {
	f.st, f.frame = false, x
	f.in, f.group = in, g
	f.times, f.rows, f.at = x.times, f.rows[:0], f.at[:0]
	before := g.FirstRow
	for _, r := range rows {
		if err := g.has(r, before); err != nil {
			return 0, err
		}
		before = r.From + r.N
		at, err := x.TimesOf(r)
		if err != nil {
			return 0, err
		}
		total += f.keep(r, at, x.times[at:at+int(r.N)], mint, maxt)
	}
	return total, nil
}

// SelectGroup is SelectFramed for all rows of g. Frame.TimesOf returns where the times of some of
// them begin.
func (f *FloatReader) SelectGroup(in io.ReaderAt, g *RowGroup, x *Frame) (total int64) {
	f.st, f.frame = false, x
	f.in, f.group = in, g
	f.times, f.rows, f.at = x.times, append(f.rows[:0], Rows{g.FirstRow, g.Rows}), f.at[:0]
	return g.Rows
}

// Rows returns the rows that Select kept, parallel to its argument. Some may be empty.
func (f *FloatReader) Rows() []Rows { return f.rows }

// Read appends the samples of the selected rows to dst, in order. It does not change dst.ST if the
// file has no start timestamps. Errors are those of Select.
func (f *FloatReader) Read(dst *FloatRun) error {
	n := 0
	for i := range f.rows {
		dst.TS = append(dst.TS, f.Times(i)...)
		n += int(f.rows[i].N)
	}
	at := len(dst.V)
	dst.V = slices.Grow(dst.V, n)[:at+n]
	if _, err := f.Values(dst.V[at:]); err != nil || !f.st {
		return err
	}
	at = len(dst.ST)
	dst.ST = slices.Grow(dst.ST, n)[:at+n]
	return f.Starts(dst.ST[at:])
}

// Starts reads the start timestamps (ms) of the selected rows, in order, into dst, whose length is
// what Select returned. It is for files that have them. Errors are those of Select.
func (f *FloatReader) Starts(dst []int64) error {
	return f.each(leafST, f.rows, func(_ int, r Rows) error {
		st := dst[:r.N]
		dst = dst[r.N:]
		return f.words.Int64s(st)
	})
}

// AllTimes returns the times (ms) of the ranges that Select was given, also those outside of its
// range of time. Ranges with equal times may share them. They are valid until the next Select; those
// of a frame, which are all that it has, stay valid.
func (f *FloatReader) AllTimes() []int64 { return f.times }

// TimesAt returns the position in AllTimes at which the times of the selected rows of range i
// begin.
func (f *FloatReader) TimesAt(i int) int { return f.at[i] }

// Values reads the values of the selected rows, in order, into dst, whose length is what Select
// returned. It reports whether any of them may be a stale marker. Errors are those of Select.
func (f *FloatReader) Values(dst []float64) (stale bool, err error) {
	if f.frame != nil {
		err = f.each(leafInt, f.rows, func(_ int, r Rows) error {
			v := dst[:r.N]
			dst = dst[r.N:]
			if err := f.words.Int64s(intsOf(v)); err != nil {
				return err
			}
			stale = f.frame.divide(r, v) || stale
			return nil
		})
		return stale, err
	}
	d := divisors{f: f, next: f.group.FirstRow}
	if err := f.group.open(&f.divs, f.in, leafDiv); err != nil {
		return false, err
	}
	err = f.each(leafInt, f.rows, func(_ int, r Rows) error {
		v := dst[:r.N]
		dst = dst[r.N:]
		if err := f.words.Int64s(intsOf(v)); err != nil {
			return err
		}
		return d.divide(r, v)
	})
	return d.odd, err
}

// divisors reads divisors together with the integers, while these are in the processor's cache.
// Most are equal to their neighbours.
type divisors struct {
	f    *FloatReader
	next int64 // the row of the next divisor
	odd  bool  // one was no finite number
}

// someDivisors is how many divisors that may differ are read at once.
const someDivisors = 512

// divide makes the values of rows of v, which holds their integers.
func (d *divisors) divide(r Rows, v []float64) error {
	if len(v) == 0 {
		return nil
	}
	if err := d.f.divs.Skip(r.From - d.next); err != nil {
		return fmt.Errorf("with column %d: %w", leafDiv, err)
	}
	d.next = r.From + r.N
	for len(v) > 0 {
		bits, n, err := d.f.divs.Equal(len(v))
		if err == nil && n == 0 {
			n = min(len(v), someDivisors)
			err = d.divideEach(v[:n])
		} else if err == nil {
			div := math.Float64frombits(bits)
			d.odd = d.odd || !(div <= math.MaxFloat64)
			divideAll(v[:n], div)
		}
		if err != nil {
			return fmt.Errorf("with column %d: %w", leafDiv, err)
		}
		v = v[n:]
	}
	return nil
}

func (d *divisors) divideEach(v []float64) error {
	d.f.div = slices.Grow(d.f.div[:0], len(v))[:len(v)]
	if err := d.f.divs.Doubles(d.f.div); err != nil {
		return err
	}
	ints := intsOf(v)
	for i, div := range d.f.div {
		d.odd = d.odd || !(div <= math.MaxFloat64)
		v[i] = Value(ints[i], div)
	}
	return nil
}

// intsOf is the memory of v as integers.
func intsOf(v []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// blobReader reads rows that have a byte string.
type blobReader struct {
	timed
	pages parquetfile.PageReader
	blobs []string // of the current page
}

// Select is that of FloatReader.
func (b *blobReader) Select(in io.ReaderAt, g *RowGroup, rows []Rows, mint, maxt int64) (int64, error) {
	return b.sel(in, g, rows, mint, maxt)
}

// read calls visit for every selected row, with the position of its range, its position among all
// selected rows, its time and its byte string.
func (b *blobReader) read(leaf int, visit func(i, at int, t int64, blob string) error) error {
	err := b.group.open(&b.pages, b.in, leaf)
	if err != nil {
		return err
	}
	first, n, at := b.group.FirstRow, 0, 0 // rows of the current page
	for i, r := range b.rows {
		for j := range r.N {
			for row := r.From + j; row >= first+int64(n); {
				first += int64(n)
				if n, err = b.page(row, first); err != nil {
					return fmt.Errorf("column %d: %w", leaf, err)
				}
			}
			if err := visit(i, at, b.Times(i)[j], b.blobs[r.From+j-first]); err != nil {
				return err
			}
			at++
		}
	}
	return nil
}

// page moves to the page whose first row is given and returns its number of rows. It reads the page
// if the wanted row is in it.
func (b *blobReader) page(wanted, first int64) (int, error) {
	n, err := b.pages.Next()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: rows are missing", ErrFormat)
	}
	if err != nil || wanted >= first+int64(n) {
		return n, err
	}
	p, err := b.pages.Load()
	if err != nil {
		return 0, err
	}
	b.blobs, err = p.Strings(b.blobs[:0], p.Entries)
	return n, err
}

// HistReader reads native histograms as FloatReader reads samples. The zero value is ready; it
// belongs to one goroutine.
type HistReader struct{ blobReader }

// Read calls visit for every selected row in order, with the position of its range in the argument
// of Select, its time (ms) and the bytes of the message (see segment.DecodeHist), which are valid
// until visit returns. Errors are those of Select and of visit.
func (h *HistReader) Read(visit func(i int, t int64, blob string) error) error {
	return h.read(leafHist, func(i, _ int, t int64, blob string) error { return visit(i, t, blob) })
}

// ExemplarReader reads exemplars as FloatReader reads samples. The zero value is ready; it belongs
// to one goroutine.
type ExemplarReader struct {
	blobReader
	values []float64
}

// Read calls visit for every selected row in order, with the position of its range in the argument
// of Select, its time (ms), its value and its labels (see segment.DecodeExemplarLabels), which are
// valid until visit returns. Errors are those of Select and of visit.
func (e *ExemplarReader) Read(visit func(i int, t int64, v float64, labels string) error) error {
	e.values = e.values[:0]
	err := e.each(leafExValue, e.rows, func(_ int, r Rows) error {
		at := len(e.values)
		e.values = slices.Grow(e.values, int(r.N))[:at+int(r.N)]
		return e.words.Doubles(e.values[at:])
	})
	if err != nil {
		return err
	}
	return e.read(leafExLabels, func(i, at int, t int64, labels string) error { return visit(i, t, e.values[at], labels) })
}
