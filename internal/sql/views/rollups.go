package views

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/buckets"
	"github.com/promlake/promlake/internal/query/duck/table"
)

// Rollup is a table with a row for each bucket of a series that has a sample of the table samples:
// what range functions over the bucket return. A row that a rollup has is read; others are computed
// from samples.
type Rollup struct {
	Store  *Store
	Reader Reader
	Step   rollup.Step
}

// RollupSteps are the widths of the tables of buckets, by the tables' names.
var RollupSteps = func() map[string]rollup.Step {
	steps := rollup.Steps()
	return map[string]rollup.Step{"rollup_5m": steps[0], "rollup_1h": steps[1]}
}()

// rollupColumn is a column of a bucket's figure: a number, a time, or a double.
type rollupColumn struct {
	table.Column
	field  rollup.Field // that it needs; -1: none
	number func(*rollup.Row) int64
	double func(*rollup.Row) float64
}

var rollupFigures = []rollupColumn{
	{Column: table.Column{Name: "count", Type: table.BigInt}, field: -1, number: func(r *rollup.Row) int64 { return r.Count }},
	{Column: table.Column{Name: "sum", Type: table.Double}, field: rollup.FieldTotal, double: (*rollup.Row).Total},
	{Column: table.Column{Name: "min", Type: table.Double}, field: rollup.FieldMin, double: func(r *rollup.Row) float64 { return r.Min }},
	{Column: table.Column{Name: "max", Type: table.Double}, field: rollup.FieldMax, double: func(r *rollup.Row) float64 { return r.Max }},
	{Column: table.Column{Name: "first", Type: table.Double}, field: rollup.FieldFirst, double: func(r *rollup.Row) float64 { return r.First }},
	{Column: table.Column{Name: "last", Type: table.Double}, field: rollup.FieldLast, double: func(r *rollup.Row) float64 { return r.Last }},
	{Column: table.Column{Name: "first_ts", Type: table.Timestamp}, field: rollup.FieldFirstT, number: func(r *rollup.Row) int64 { return r.FirstT * 1000 }},
	{Column: table.Column{Name: "last_ts", Type: table.Timestamp}, field: rollup.FieldLastT, number: func(r *rollup.Row) int64 { return r.LastT * 1000 }},
	{Column: table.Column{Name: "increase", Type: table.Double}, field: rollup.FieldIncrease, double: (*rollup.Row).Increase},
	{Column: table.Column{Name: "changes", Type: table.BigInt}, field: rollup.FieldChanges, number: func(r *rollup.Row) int64 { return r.Changes }},
	{Column: table.Column{Name: "resets", Type: table.BigInt}, field: rollup.FieldResets, number: func(r *rollup.Row) int64 { return r.Resets }},
	{Column: table.Column{Name: "nans", Type: table.BigInt}, field: rollup.FieldNaNs, number: func(r *rollup.Row) int64 { return r.NaNs }},
}

// firstFigure is the position of the first of rollupFigures among the columns: metric, labels and
// the time, which is the end of the bucket, come before.
const firstFigure = 3

// Columns implements table.Table.
func (*Rollup) Columns() []table.Column {
	out := append([]table.Column{}, flatColumns[:firstFigure]...)
	for _, f := range rollupFigures {
		out = append(out, f.Column)
	}
	return out
}

// Rows implements table.Table.
func (*Rollup) Rows() int64 { return 1_000_000 }

// fields are what some columns need of the rows.
func (*Rollup) fields(columns []int) (out []rollup.Field) {
	for _, c := range columns {
		if c >= firstFigure && rollupFigures[c-firstFigure].field >= 0 {
			out = append(out, rollupFigures[c-firstFigure].field)
		}
	}
	return out
}

// Open implements table.Table.
func (t *Rollup) Open(columns []int) (table.Scan, error) {
	ctx, res, r, err := t.Store.resolve(t.Reader)
	if err != nil {
		return nil, err
	}
	if res == nil {
		return none(t.Reader), nil
	}
	s, err := t.Store.Buckets.Open(ctx, res, t.Step, r.MinT, r.MaxT, t.fields(columns))
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	t.Reader.Counts(s.Counts)
	t.Reader.Progress(s.Progress)
	return &rollupScan{t, s}, nil
}

// rollupScan is one pass over buckets.
type rollupScan struct {
	*Rollup
	scan *buckets.Scan
}

// Threads implements table.Scan.
func (s *rollupScan) Threads() int { return max(1, s.scan.Units()) }

// Close implements table.Scan.
func (s *rollupScan) Close() {}

// Cursor implements table.Scan.
func (s *rollupScan) Cursor() table.Cursor { return &rollupCursor{scan: s, read: s.scan.Cursor()} }

// rollupCursor writes the rows of series after series.
type rollupCursor struct {
	scan *rollupScan
	read *buckets.Cursor
	lset labels.Labels
	rows []rollup.Row // of the current series, that are left
}

// Close implements table.Cursor.
func (c *rollupCursor) Close() { c.read.Close() }

// Next implements table.Cursor.
func (c *rollupCursor) Next(out *table.Chunk) error {
	for out.Rows < table.ChunkRows {
		if len(c.rows) == 0 {
			x, rows, err := c.read.Next()
			if err != nil {
				return c.scan.Reader.Fail(err)
			}
			if len(rows) == 0 {
				return nil
			}
			c.lset, c.rows = x.Labels, rows
		}
		if apart(out, len(c.rows)) {
			return nil
		}
		n := min(len(c.rows), table.ChunkRows-out.Rows)
		if ends := out.Numbers(firstFigure - 1); ends != nil {
			for i := range c.rows[:n] {
				ends[out.Rows+i] = (c.rows[i].Bucket + c.scan.Step.Millis) * 1000
			}
		}
		for k, f := range rollupFigures {
			if to := out.Numbers(firstFigure + k); f.number != nil && to != nil {
				for i := range c.rows[:n] {
					to[out.Rows+i] = f.number(&c.rows[i])
				}
			}
			if to := out.Doubles(firstFigure + k); f.double != nil && to != nil {
				for i := range c.rows[:n] {
					to[out.Rows+i] = f.double(&c.rows[i])
				}
			}
		}
		Flat{}.Put(out, c.lset)
		Flat{}.Repeat(out, n)
		out.Rows += n
		c.rows = c.rows[n:]
	}
	return nil
}
