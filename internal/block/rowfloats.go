package block

import (
	"io"
	"slices"
)

// FloatReader reads the samples of some rows of a row group, knowing nothing but the row group's entry in meta.json: it needs no footer, and
// pages without a wanted row are not decompressed. The zero value is ready. It keeps its buffers and belongs to one goroutine.
type FloatReader struct {
	timed
	st   bool
	ints []int64
	div  []float64
}

// Select reads the times of rows, which are ascending, disjoint, each of one series, and in g, and keeps those within [mint, maxt] (ms). It returns how
// many there are: what Read will append. in is the row group's file, st says whether it has start timestamps.
// Errors: ErrFormat, parquetfile.ErrFormat, and those of in.
func (f *FloatReader) Select(in io.ReaderAt, g *RowGroup, st bool, rows []Rows, mint, maxt int64) (int64, error) {
	f.st = st
	return f.sel(in, g, rows, mint, maxt)
}

// Rows are the rows that Select kept, parallel to those that it was given. Some may be empty.
func (f *FloatReader) Rows() []Rows { return f.rows }

// Read appends the samples of the selected rows to dst, in order; dst.ST is left alone if the file has no start timestamps. Errors are those of
// Select.
func (f *FloatReader) Read(dst *FloatRun) error {
	for i := range f.rows {
		dst.TS = append(dst.TS, f.Times(i)...)
	}
	if err := f.values(dst); err != nil || !f.st {
		return err
	}
	return f.each(leafST, f.rows, func(_ int, r Rows) error {
		at := len(dst.ST)
		dst.ST = slices.Grow(dst.ST, int(r.N))[:at+int(r.N)]
		return f.words.Int64s(dst.ST[at:])
	})
}

// values appends the values.
func (f *FloatReader) values(dst *FloatRun) error {
	f.ints = f.ints[:0]
	err := f.each(leafInt, f.rows, func(_ int, r Rows) error {
		at := len(f.ints)
		f.ints = slices.Grow(f.ints, int(r.N))[:at+int(r.N)]
		return f.words.Int64s(f.ints[at:])
	})
	if err != nil {
		return err
	}
	ints := f.ints
	return f.each(leafDiv, f.rows, func(_ int, r Rows) error {
		f.div = slices.Grow(f.div[:0], int(r.N))[:r.N]
		if err := f.words.Doubles(f.div); err != nil {
			return err
		}
		dst.V = DecodeValues(dst.V, ints[:r.N], f.div)
		ints = ints[r.N:]
		return nil
	})
}
