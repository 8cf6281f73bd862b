package query

import (
	"context"
	"fmt"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// overlapping returns the rows of a series table that have something around [mint, maxt] (ms). Those of a segment have its range.
func overlapping(l *source.Object, t *index.Table, rows []index.Range, mint, maxt int64) []index.Range {
	if l.Footer.Meta == nil || l.Footer.MinT >= mint && l.Footer.MaxT <= maxt {
		return rows
	}
	return index.Keep(rows, func(row int) bool {
		from, upto := t.Times(row)
		return from <= maxt && upto >= mint
	})
}

// alive returns the rows of which one tombstone alone does not delete all samples within [mint, maxt] (ms). What only several tombstones cover
// together is not found out here.
func alive(ctx context.Context, l *source.Object, t *index.Table, rows []index.Range, tombs []catalog.Tombstone, mint, maxt int64) ([]index.Range, error) {
	for _, d := range tombs {
		if !d.AppliesTo(l.DeletesThrough) {
			continue
		}
		ms, err := d.LabelMatchers()
		if err != nil {
			return nil, fmt.Errorf("read tombstone %s: %w", d.ID, err)
		}
		deleted, err := t.Select(ctx, ms)
		if err != nil {
			return nil, err
		}
		dead := index.Keep(deleted, func(row int) bool {
			from, upto := t.Times(row)
			return from <= upto && d.MinT <= max(from, mint) && d.MaxT >= min(upto, maxt)
		})
		rows = index.Without(rows, dead)
	}
	return rows, nil
}
