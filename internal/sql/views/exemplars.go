package views

import (
	"context"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

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
