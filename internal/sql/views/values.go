package views

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// Values is the table of a PromQL expression's values, with the columns of samples.
type Values struct {
	// Eval evaluates the expression. Its result has no histograms.
	Eval func() (promql.Matrix, error)
}

// Columns implements table.Table.
func (*Values) Columns() []table.Column { return flatColumns }

// Rows implements table.Table.
func (*Values) Rows() int64 { return 100_000 }

// Open implements table.Table.
func (v *Values) Open([]int) (table.Scan, error) {
	m, err := v.Eval()
	if err != nil {
		return nil, err
	}
	all := &valueRows{left: m}
	return &scan{shape: Flat{}, threads: 1, rows: func() rows { return all }}, nil
}

// valueRows are the points of series.
type valueRows struct {
	points []promql.FPoint // of the current series
	left   promql.Matrix   // the series after it
}

func (*valueRows) Close() {}

func (r *valueRows) next() (labels.Labels, int, error) {
	for len(r.left) > 0 {
		s := r.left[0]
		r.points, r.left = s.Floats, r.left[1:]
		if len(r.points) > 0 {
			return s.Metric, len(r.points), nil
		}
	}
	return labels.EmptyLabels(), 0, nil
}

func (r *valueRows) put(c *table.Chunk, from, to int) {
	times, values := c.Numbers(2), c.Doubles(3)
	for i, p := range r.points[from:to] {
		if times != nil {
			times[c.Rows+i] = p.T * 1000
		}
		if values != nil {
			values[c.Rows+i] = p.F
		}
	}
}
