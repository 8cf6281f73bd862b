package block

import (
	"fmt"
	"io"
	"slices"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

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
