package views

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// exemplars is a table with a row for each exemplar. Its labels are in the column exemplar.
type exemplars struct {
	listed
	store *Store
}

var exemplarColumns = append(append([]table.Column{}, flatColumns...), table.Column{Name: "exemplar", Type: table.Map})

// Exemplars returns the table exemplars.
func Exemplars(store *Store, from Reader) table.Table {
	return &exemplars{listed{from, exemplarColumns, 10_000, func(ctx context.Context, r Read) (*list, error) {
		if r.MinT > r.MaxT {
			return none(from), nil
		}
		m, err := store.Series.Exemplars(ctx, r.Snap, r.MinT, r.MaxT, store.shown(ctx, r)...)
		if err != nil {
			return nil, err
		}
		found, err := store.Samples.Exemplars(ctx, m)
		if err != nil {
			return nil, err
		}
		type row struct {
			series labels.Labels
			exemplar.Exemplar
		}
		var rows []row
		for _, s := range found {
			for _, e := range s.Exemplars {
				rows = append(rows, row{s.SeriesLabels, e})
			}
		}
		from.Progress(func() (done, planned int64) { return 1, 1 }) // all are in memory
		return &list{n: len(rows), put: func(c *table.Chunk, at int) {
			x := &rows[at]
			Flat{}.Put(c, x.series)
			putNumbers(c, 2, x.Ts*1000)
			if v := c.Doubles(3); v != nil {
				v[c.Rows] = x.Value
			}
			t := c.Texts(4)
			x.Labels.Range(func(l labels.Label) { t.Pair(l.Name, l.Value) })
			t.EndMap()
		}}, nil
	}}, store}
}

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
