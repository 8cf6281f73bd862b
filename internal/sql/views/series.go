package views

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
)

var seriesColumns = []table.Column{{Name: metricColumn, Type: table.Varchar}, {Name: labelsColumn, Type: table.Map}}

// Series returns the table series: the label sets that /api/v1/series returns without a time range.
func Series(store *Store, r Reader) table.Table {
	return &listed{r, seriesColumns, 10_000, func(ctx context.Context, r Read) (*list, error) {
		read, sets := store.Series.Series, store.shown(ctx, r)
		if r.Stored {
			read, sets = store.Series.Tables.Series, r.Sets
		}
		var ms []*labels.Matcher
		if len(sets) == 1 { // others are left to DuckDB
			ms = sets[0]
		}
		found, err := read(ctx, r.Snap, r.MinT, r.MaxT, ms)
		if err == nil {
			err = request.Found(ctx, found, lookup.LabelsOf)
		}
		if err != nil {
			return nil, err
		}
		return &list{n: len(found), put: func(c *table.Chunk, row int) {
			putMetric(c.Texts(0), found[row].Labels)
			putLabels(c.Texts(1), found[row].Labels)
		}}, nil
	}}
}
