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
	if err != nil || res == nil {
		return none(t.Reader), err
	}
	s, err := t.Store.Buckets.Open(ctx, res, t.Step, r.MinT, r.MaxT, t.fields(columns))
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	t.Reader.Counts(s.Counts)
	t.Reader.Progress(s.Progress)
	return &scan{t.Reader, Flat{}, s.Units(), func() rows { return &rollupRows{Cursor: s.Cursor(), step: t.Step.Millis} }}, nil
}

// rollupRows are the buckets of series.
type rollupRows struct {
	*buckets.Cursor
	step int64        // ms
	rows []rollup.Row // of the current series, or a part of them
}

func (r *rollupRows) next() (labels.Labels, int, error) {
	x, rows, err := r.Next()
	if err != nil || len(rows) == 0 {
		return labels.EmptyLabels(), 0, err
	}
	r.rows = rows
	return x.Labels, len(rows), nil
}

func (r *rollupRows) put(c *table.Chunk, from, to int) {
	rows := r.rows[from:to]
	if ends := c.Numbers(firstFigure - 1); ends != nil {
		for i := range rows {
			ends[c.Rows+i] = (rows[i].Bucket + r.step) * 1000
		}
	}
	for k, f := range rollupFigures {
		if out := c.Numbers(firstFigure + k); f.number != nil && out != nil {
			for i := range rows {
				out[c.Rows+i] = f.number(&rows[i])
			}
		}
		if out := c.Doubles(firstFigure + k); f.double != nil && out != nil {
			for i := range rows {
				out[c.Rows+i] = f.double(&rows[i])
			}
		}
	}
}
