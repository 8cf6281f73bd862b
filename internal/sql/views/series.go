package views

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
)

// Series is the table series: the label sets that /api/v1/series returns without a time range.
type Series struct {
	Store  *Store
	Reader Reader
}

var seriesColumns = []table.Column{{Name: metricColumn, Type: table.Varchar}, {Name: labelsColumn, Type: table.Map}}

// Columns implements table.Table.
func (*Series) Columns() []table.Column { return seriesColumns }

// Rows implements table.Table.
func (*Series) Rows() int64 { return 10_000 }

// Open implements table.Table.
func (t *Series) Open([]int) (table.Scan, error) {
	ctx, r, err := t.Reader.Read()
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	read, sets := t.Store.Series.Series, t.Store.shown(ctx, r)
	if r.Stored {
		read, sets = t.Store.Series.Tables.Series, r.Sets
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
		return nil, t.Reader.Fail(err)
	}
	return &list{n: len(found), put: func(c *table.Chunk, row int) {
		putMetric(c.Texts(0), found[row].Labels)
		putLabels(c.Texts(1), found[row].Labels)
	}}, nil
}
