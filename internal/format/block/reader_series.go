package block

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Row is a row of the series table: a label set, and how many rows it has in the other files, where
// they follow those of the series before it. Times in ms, over all of them.
type Row struct {
	Ref                      series.Ref
	Floats, Hists, Exemplars int64
	MinT, MaxT               int64
}

// Series reads the series table. The label sets that keep chooses by their series.ID, nil all,
// become references into t, to which it adds those that are missing; the others are series.None.
// The caller holds t's write lock. Labels decide, so equal identifiers of
// different label sets do no harm. Errors: ErrFormat, series.ErrFull, and those of the Source.
func (r *Reader) Series(t *series.Table, keep func(id uint64) bool) ([]Row, error) {
	d := seriesReader{r: r, dec: segment.NewSeriesDecoder(t, r.moved, keep), rows: make([]Row, 0, min(r.meta.Series, maxGroupRows))}
	for _, f := range r.meta.one(SeriesFile) {
		if err := d.file(f); err != nil {
			return nil, err
		}
		if err := d.check(); err != nil {
			return nil, f.fail(err)
		}
	}
	return d.rows, nil
}

// countColumns are the columns of the series table that Row is made of.
var countColumns = []column{
	{ColRowStart, format.Int64}, {ColRowCount, format.Int64}, {ColHistStart, format.Int64}, {ColHistCount, format.Int64},
	{ColExCount, format.Int64}, {ColMinTS, format.Int64}, {ColMaxTS, format.Int64},
}

// seriesReader reads series.parquet.
type seriesReader struct {
	r    *Reader
	dec  *segment.SeriesDecoder
	rows []Row
	vals [7][]int64 // by count column

	floats, hists, exemplars int64 // of all rows so far
}

func (d *seriesReader) file(f *File) error {
	g := groups{r: d.r, files: []*File{f}, columns: countColumns, whole: true}
	for {
		if _, err := g.next(); errors.Is(err, errEnd) {
			return nil
		}
		if err := g.load(); err != nil {
			return err
		}
		refs, _, err := d.dec.Group(&g.group)
		if err != nil {
			return f.fail(err)
		}
		for i := range d.vals {
			if d.vals[i], err = g.int64s(d.vals[i][:0], i); err != nil {
				return err
			}
		}
		for i, ref := range refs {
			if err := d.add(i, ref); err != nil {
				return f.fail(err)
			}
		}
	}
}

// add adds row i of a row group and checks that its rows follow on those before.
func (d *seriesReader) add(i int, ref series.Ref) error {
	v := func(c int) int64 { return d.vals[c][i] }
	row := Row{Ref: ref, Floats: v(1), Hists: v(3), Exemplars: v(4), MinT: v(5), MaxT: v(6)}
	if v(0) != d.floats || v(2) != d.hists || min(row.Floats, row.Hists, row.Exemplars) < 0 {
		return fmt.Errorf("%w: rows of series %d do not follow on those before", ErrFormat, len(d.rows))
	}
	d.floats += row.Floats
	d.hists += row.Hists
	d.exemplars += row.Exemplars
	d.rows = append(d.rows, row)
	return nil
}

func (d *seriesReader) check() error {
	m := &d.r.meta
	if d.floats != m.Floats || d.hists != m.Hists || d.exemplars != m.Exemplars {
		return fmt.Errorf("%w: %d float samples, %d histograms and %d exemplars in the series table, %d, %d and %d in meta.json",
			ErrFormat, d.floats, d.hists, d.exemplars, m.Floats, m.Hists, m.Exemplars)
	}
	refs := make([]series.Ref, len(d.rows))
	for i := range d.rows {
		refs[i] = d.rows[i].Ref
	}
	return d.dec.CheckOrder(refs, series.ComparePriority)
}

// Metadata returns the descriptions of metric families, sorted by metric. Errors: ErrFormat, and
// those of the Source.
func (r *Reader) Metadata() ([]segment.Metadata, error) {
	g := groups{r: r, files: r.meta.one(MetadataFile), columns: []column{
		{segment.ColMetric, format.ByteArray}, {ColType, format.ByteArray}, {ColUnit, format.ByteArray}, {ColHelp, format.ByteArray},
	}}
	var out []segment.Metadata
	for {
		next, err := g.next()
		if errors.Is(err, errEnd) {
			return out, nil
		}
		if err := g.load(); err != nil {
			return nil, err
		}
		var cols [4][]string
		for i := range cols {
			if cols[i], err = g.blobs(nil, i); err != nil {
				return nil, err
			}
		}
		for i := range next.Rows {
			out = append(out, segment.Metadata{Metric: cols[0][i], Type: cols[1][i], Unit: cols[2][i], Help: cols[3][i]})
		}
	}
}
