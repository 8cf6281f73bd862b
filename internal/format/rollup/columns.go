package rollup

import (
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// columns are the rows of a row group, column by column.
type columns struct {
	rows    int
	metrics parquetfile.Strings
	ids     parquetfile.Numbers
	lastID  uint64
	ends    []int // by series: its end in the rows; the last one is still open
	ints    [len(intColumns)][]int64
	figures [len(figures)][]float64
	sumC    []float64

	enc     block.Encoder
	coded   [len(figures)]block.Columns
	joint   block.Columns // of the figures of a series that have one divisor
	vals    []float64
	numbers parquetfile.Numbers // of the column being written
	s       parquetfile.Scratch
	trial   parquetfile.Trial
	other   []byte // the second encoding that is tried
}

// Positions in intColumns and figures.
const (
	bucketColumn = "bucket"

	intFlags, intCount, intResets = 1, 2, 7

	figFirst, figLast, figMin, figMax, figSum, figResetSum = 0, 1, 2, 3, 4, 5
)

// The columns of a rollup after metric and series_id, in the file's order: intColumns, two columns
// for each of the figures, and sum_c.
var (
	intColumns = [...]struct {
		name string
		time bool
		of   func(*Row) *int64
	}{
		{bucketColumn, true, func(r *Row) *int64 { return &r.Bucket }},
		{"flags", false, func(r *Row) *int64 { return &r.Flags }},
		{"count", false, func(r *Row) *int64 { return &r.Count }},
		{"first_ts", true, func(r *Row) *int64 { return &r.FirstT }},
		{"last_ts", true, func(r *Row) *int64 { return &r.LastT }},
		{"nans", false, func(r *Row) *int64 { return &r.NaNs }},
		{"changes", false, func(r *Row) *int64 { return &r.Changes }},
		{"resets", false, func(r *Row) *int64 { return &r.Resets }},
		{"stale", false, func(r *Row) *int64 { return &r.Stale }},
		{"stale_ts", true, func(r *Row) *int64 { return &r.StaleT }},
	}
	figures = [...]struct {
		name string
		of   func(*Row) *float64
	}{
		{"first", func(r *Row) *float64 { return &r.First }},
		{lastFigure, func(r *Row) *float64 { return &r.Last }},
		{"min", func(r *Row) *float64 { return &r.Min }},
		{"max", func(r *Row) *float64 { return &r.Max }},
		{"sum", func(r *Row) *float64 { return &r.Sum }},
		{"reset_sum", func(r *Row) *float64 { return &r.ResetSum }},
	}
)

// schema is that of every rollup.
func schema() []format.SchemaElement {
	s := parquetfile.NewSchema("promlake_rollup")
	s.Add(parquetfile.String("metric"))
	s.Add(parquetfile.Uint64("series_id"))
	for _, c := range intColumns {
		if c.time {
			s.Add(parquetfile.Timestamp(c.name))
		} else {
			s.Add(parquetfile.Bare(c.name, format.Int64))
		}
	}
	for _, f := range figures {
		s.Add(parquetfile.Bare(f.name+"_int", format.Int64))
		s.Add(parquetfile.Bare(f.name+"_div", format.Double))
	}
	s.Add(parquetfile.Bare("sum_c", format.Double))
	return s.Elements()
}

// reset empties the row group.
func (c *columns) reset() {
	c.rows = 0
	c.metrics.Reset()
	c.ids.Reset()
	c.ends = c.ends[:0]
	for i := range c.ints {
		c.ints[i] = c.ints[i][:0]
	}
	for i := range c.figures {
		c.figures[i] = c.figures[i][:0]
	}
	c.sumC = c.sumC[:0]
}

// add appends a row of the series id.
func (c *columns) add(id uint64, row *Row) {
	if len(c.ends) == 0 || c.lastID != id {
		c.ends = append(c.ends, c.rows)
		c.lastID = id
	}
	c.rows++
	c.ends[len(c.ends)-1] = c.rows
	c.ids.Append(id, 1)
	r := *row
	r.elide()
	for i := range intColumns {
		c.ints[i] = append(c.ints[i], *intColumns[i].of(&r))
	}
	for i := range figures {
		c.figures[i] = append(c.figures[i], *figures[i].of(&r))
	}
	c.sumC = append(c.sumC, r.SumC)
}

// write adds the chunks of a row group to w and ends it.
func (c *columns) write(w *parquetfile.Writer) error {
	c.encode()
	w.Add(c.metrics.Chunk("metric", &c.s), nil)
	w.Add(c.ids.Uint64s("series_id", &c.s), nil)
	same := shared{w: w}
	for i, vals := range c.ints {
		same.add(intColumns[i].name, bitColumn{ints: vals}, func() (parquetfile.Chunk, error) { return c.intChunk(intColumns[i].name, vals) })
	}
	for i := range figures {
		whole, div := figures[i].name+"_int", figures[i].name+"_div"
		same.add(whole, bitColumn{ints: c.coded[i].Int}, func() (parquetfile.Chunk, error) { return figureChunk(whole, &c.s, c.coded[i].Int) })
		same.add(div, bitColumn{floats: c.coded[i].Div}, func() (parquetfile.Chunk, error) { return c.doubleChunk(div, c.coded[i].Div), nil })
	}
	w.Add(c.compensations(), nil)
	_, err := w.EndGroup(c.rows)
	return err
}

// intChunk is a delta-coded column: with deltas of as few bits as possible, or of whole bytes where
// that is smaller after compression, as for times that repeat from series to series. Only the
// column that orders the rows of a series has statistics.
func (c *columns) intChunk(name string, vals []int64) (parquetfile.Chunk, error) {
	chunk, err := parquetfile.Int64s(name, &c.s, vals)
	if err != nil {
		return chunk, err
	}
	if name != bucketColumn {
		chunk.Min, chunk.Max = nil, nil
	}
	c.other = delta.AppendBytes(c.other[:0], vals)
	if page := &chunk.Pages[0]; c.trial.Size(c.other) < c.trial.Size(page.Data) {
		page.Data = c.other
	}
	return chunk, nil
}

// figureChunk is the column of a figure's integers.
func figureChunk(name string, s *parquetfile.Scratch, vals []int64) (parquetfile.Chunk, error) {
	chunk, err := parquetfile.Int64s(name, s, vals)
	chunk.Min, chunk.Max = nil, nil
	return chunk, err
}

// compensations is sum_c: 0 in rows of whole numbers, else different in nearly every row.
func (c *columns) compensations() parquetfile.Chunk {
	c.numbers.Reset()
	for _, v := range c.sumC {
		if c.numbers.Append(math.Float64bits(v), 1); c.numbers.Distinct()*leastRepeats > c.rows {
			return parquetfile.SplitDoubles(sumC, &c.s, c.sumC)
		}
	}
	return c.numbers.Doubles(sumC, &c.s)
}

// leastRepeats is how many rows a compensation must have on average to be in a dictionary.
const leastRepeats = 16

// doubleChunk is a dictionary-coded column if few values are distinct, else a plain one.
func (c *columns) doubleChunk(name string, vals []float64) parquetfile.Chunk {
	c.numbers.Reset()
	for i, v := range vals {
		if c.numbers.Append(math.Float64bits(v), 1); c.numbers.Distinct() > maxDistinct && 2*c.numbers.Distinct() > i {
			return parquetfile.Doubles(name, &c.s, vals)
		}
	}
	return c.numbers.Doubles(name, &c.s)
}

// maxDistinct is the least number of distinct values at which a column may be too varied for a
// dictionary.
const maxDistinct = 1024
