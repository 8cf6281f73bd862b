package exec

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
	"github.com/promlake/promlake/internal/query/samples"
)

// Result is the value of a pushed subtree.
type Result struct {
	Grid     plan.Grid
	Warnings annotations.Annotations

	labels []labels.Labels // by ordinal
	rows   []vector.Row
	room   room // of the rows
}

// Len is the number of series.
func (r *Result) Len() int { return len(r.rows) }

// Series returns the series, with a sample at each time of the grid: a stale marker where there is
// no value. They are valid until Release.
func (r *Result) Series() []*samples.Series {
	t := make([]int64, r.Grid.N)
	for k := range t {
		t[k] = r.Grid.Start + int64(k)*r.Grid.Step
	}
	out, backing := make([]*samples.Series, len(r.rows)), make([]samples.Series, len(r.rows))
	for i, row := range r.rows {
		v := row.V
		if len(v) == 1 {
			v = slices.Repeat(v, len(t))
		}
		backing[i] = samples.NewSeries(r.labels[row.I], t, v)
		out[i] = &backing[i]
	}
	return out
}

// Append appends the series that have a value to m, and their values to points.
func (r *Result) Append(m promql.Matrix, points []promql.FPoint) (promql.Matrix, []promql.FPoint) {
	for _, row := range r.rows {
		begin := len(points)
		for k := range r.Grid.N {
			v := row.V[min(k, len(row.V)-1)]
			if !value.IsStaleNaN(v) {
				points = append(points, promql.FPoint{T: r.Grid.Start + int64(k)*r.Grid.Step, F: v})
			}
		}
		if end := len(points); end > begin {
			m = append(m, promql.Series{Metric: r.labels[row.I], Floats: points[begin:end:end]})
		}
	}
	return m, points
}

// Vector returns the values at the first time of the grid.
func (r *Result) Vector() promql.Vector {
	v := make(promql.Vector, 0, len(r.rows))
	for _, row := range r.rows {
		if f := row.V[0]; !value.IsStaleNaN(f) {
			v = append(v, promql.Sample{Metric: r.labels[row.I], F: f, T: r.Grid.Start})
		}
	}
	return v
}

// Values is the number of values that Append needs room for, at most.
func (r *Result) Values() int { return len(r.rows) * r.Grid.N }

// Present is the number of values that are there.
func (r *Result) Present() (n int) {
	for _, row := range r.rows {
		for k := range r.Grid.N {
			if !value.IsStaleNaN(row.V[min(k, len(row.V)-1)]) {
				n++
			}
		}
	}
	return n
}

// Release lets others have the memory of the values.
func (r *Result) Release() {
	r.rows = nil
	r.room.release()
}
