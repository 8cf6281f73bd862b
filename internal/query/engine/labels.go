package engine

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/store/catalog"
)

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return q.distinct(ctx, "label_values", hints, ms, func(t *index.Table, rows []index.Range) ([]string, error) {
		return t.Values(name, rows), nil
	})
}

// LabelNames implements storage.LabelQuerier. The label of replicas is hidden where their series
// are shown without it.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	rule := q.Series.Rule(ctx).For(ms)
	return q.distinct(ctx, "label_names", hints, ms, func(t *index.Table, rows []index.Range) ([]string, error) {
		return lookup.ShownNames(ctx, t, rows, rule)
	})
}

// distinct returns the distinct strings that of returns for the series tables with matching rows,
// sorted, and at most as many as the hints allow.
func (q *querier) distinct(ctx context.Context, operation string, hints *storage.LabelHints, ms []*labels.Matcher, of func(*index.Table, []index.Range) ([]string, error)) (out []string, notes annotations.Annotations, err error) {
	if q.MinT > q.MaxT {
		return nil, nil, nil
	}
	err = q.Metrics.Measure(operation, func() (err error) {
		notes, err = q.Read(ctx, func(snap catalog.Snapshot) error {
			seen := map[string]struct{}{}
			out = nil
			return q.Tables.Each(ctx, snap, q.MinT, q.MaxT, ms, func(t *index.Table, rows []index.Range) error {
				found, err := of(t, rows)
				for _, s := range found {
					if _, known := seen[s]; !known {
						seen[s] = struct{}{}
						out = append(out, s)
					}
				}
				return err
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
