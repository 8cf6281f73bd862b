package rollup

import (
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/parquetfile"
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
	coded   block.Columns
	numbers parquetfile.Numbers // of the column being written
	s       parquetfile.Scratch
}

// The columns of a rollup after metric and series_id, in the file's order: intColumns, two columns
// for each of the figures, and sum_c.
var (
	intColumns = [...]struct {
		name string
		time bool
		of   func(*Row) *int64
	}{
		{"bucket", true, func(r *Row) *int64 { return &r.Bucket }},
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
		{"last", func(r *Row) *float64 { return &r.Last }},
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
	w.Add(c.metrics.Chunk("metric", &c.s), nil)
	w.Add(c.ids.Uint64s("series_id", &c.s), nil)
	for i, vals := range c.ints {
		w.Add(parquetfile.Int64s(intColumns[i].name, &c.s, vals))
	}
	for i, vals := range c.figures {
		c.writeFigure(w, figures[i].name, vals)
	}
	w.Add(c.doubleChunk("sum_c", c.sumC), nil)
	_, err := w.EndGroup(c.rows)
	return err
}

// writeFigure adds the two chunks of a figure.
func (c *columns) writeFigure(w *parquetfile.Writer, name string, vals []float64) {
	c.coded.Reset()
	begin := 0
	for _, end := range c.ends {
		c.enc.Encode(&c.coded, vals[begin:end])
		begin = end
	}
	w.Add(parquetfile.Int64s(name+"_int", &c.s, c.coded.Int))
	w.Add(c.doubleChunk(name+"_div", c.coded.Div), nil)
}

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
