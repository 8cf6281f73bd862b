package query

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/index"
)

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.distinct(ctx, "label_values", hints, ms, func(t *index.Table, rows []index.Range) []string { return t.Values(name, rows) })
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.distinct(ctx, "label_names", hints, ms, (*index.Table).Used)
}

// distinct returns the different strings among what of returns for the tables that have matching series, sorted, no more than the hints' limit.
func (q *querier) distinct(ctx context.Context, operation string, hints *storage.LabelHints, ms []*labels.Matcher, of func(*index.Table, []index.Range) []string) (out []string, notes annotations.Annotations, err error) {
	if q.MinT > q.MaxT {
		return nil, nil, nil
	}
	err = q.stage.metrics.Measure(operation, func() (err error) {
		notes, err = q.Read(ctx, func(snap catalog.Snapshot) error {
			seen := map[string]struct{}{}
			out = nil
			return q.stage.eachTable(ctx, snap, q.MinT, q.MaxT, ms, func(t *index.Table, rows []index.Range) error {
				for _, s := range of(t, rows) {
					if _, known := seen[s]; !known {
						seen[s] = struct{}{}
						out = append(out, s)
					}
				}
				return nil
			})
		})
		return err
	})
	slices.Sort(out)
	if hints != nil && hints.Limit > 0 && len(out) > hints.Limit {
		out = out[:hints.Limit]
	}
	return out, notes, err
}

// eachTable calls visit with the series tables of the objects that overlap [mint, maxt] (ms) and their rows that match and are not
// deleted, if there are any.
func (s *Stage) eachTable(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, ms []*labels.Matcher, visit func(t *index.Table, rows []index.Range) error) error {
	sel, err := s.locate(ctx, snap, mint, maxt, ms)
	if err != nil {
		return err
	}
	tables, err := s.tables(ctx, sel.objs)
	if err != nil {
		return err
	}
	s.consulted(ctx, sel.objs)
	for i, t := range tables {
		rows, err := t.Select(ctx, ms)
		if err != nil {
			return err
		}
		if rows = overlapping(&sel.objs[i], t, rows, mint, maxt); len(rows) == 0 {
			continue
		}
		if rows, err = alive(ctx, &sel.objs[i], t, rows, snap.Tombstones, mint, maxt); err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := visit(t, rows); err != nil {
				return err
			}
		}
	}
	return nil
}
