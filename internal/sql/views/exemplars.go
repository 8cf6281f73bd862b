package views

import (
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// Exemplars is a table with a row for each exemplar. Its labels are in the column exemplar.
type Exemplars struct {
	Store  *Store
	Reader Reader
}

var exemplarColumns = append(append([]table.Column{}, flatColumns...), table.Column{Name: "exemplar", Type: table.Map})

// Columns implements table.Table.
func (*Exemplars) Columns() []table.Column { return exemplarColumns }

// Rows implements table.Table.
func (*Exemplars) Rows() int64 { return 10_000 }

// Open implements table.Table.
func (t *Exemplars) Open([]int) (table.Scan, error) {
	ctx, r, err := t.Reader.Read()
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	if r.MinT > r.MaxT {
		return none(t.Reader), nil
	}
	type row struct {
		series labels.Labels
		exemplar.Exemplar
	}
	var rows []row
	m, err := t.Store.Series.Exemplars(ctx, r.Snap, r.MinT, r.MaxT, t.Store.shown(ctx, r)...)
	if err == nil {
		var found []exemplar.QueryResult
		found, err = t.Store.Samples.Exemplars(ctx, m)
		for _, s := range found {
			for _, e := range s.Exemplars {
				rows = append(rows, row{s.SeriesLabels, e})
			}
		}
	}
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	t.Reader.Progress(func() (done, planned int64) { return 1, 1 }) // all are in memory
	return &list{n: len(rows), put: func(c *table.Chunk, at int) {
		x := &rows[at]
		Flat{}.Put(c, x.series)
		if ts := c.Numbers(2); ts != nil {
			ts[c.Rows] = x.Ts * 1000
		}
		if v := c.Doubles(3); v != nil {
			v[c.Rows] = x.Value
		}
		t := c.Texts(4)
		x.Labels.Range(func(l labels.Label) { t.Pair(l.Name, l.Value) })
		t.EndMap()
	}}, nil
}
