package query

import (
	"context"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) (out []string, _ annotations.Annotations, err error) {
	err = q.stage.measure("label_values", func() error {
		return q.over(ctx, labelsOnly, q.mint, q.maxt, ms, func(src *source, pred predicate, _ deletions) error {
			out = nil
			for _, term := range src.terms(name) {
				vals, err := q.stage.distinct(ctx, term, src, pred)
				if err != nil {
					return err
				}
				out = append(out, vals...)
			}
			return nil
		})
	})
	return limited(out, hints), nil, err
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) (out []string, _ annotations.Annotations, err error) {
	err = q.stage.measure("label_names", func() error {
		return q.over(ctx, labelsOnly, q.mint, q.maxt, ms, func(src *source, pred predicate, _ deletions) error {
			cols, err := q.stage.usedColumns(ctx, src, pred)
			if err != nil {
				return err
			}
			out = cols
			if len(src.inMap) == 0 {
				return nil
			}
			keys, err := q.stage.distinct(ctx, "unnest(map_keys("+duck.Ident(segment.ColLabels)+"))", src, pred)
			out = append(out, keys...)
			return err
		})
	})
	return limited(out, hints), nil, err
}

// distinct returns the non-empty values of a SQL expression.
func (s *Stage) distinct(ctx context.Context, expr string, src *source, pred predicate) ([]string, error) {
	var out []string
	sql := "SELECT DISTINCT " + expr + " FROM " + src.from() + pred.sql()
	err := s.db.Each(ctx, sql, []string{duck.Varchar}, func(_ int, cols []duck.Vector) error {
		vals := cols[0].Strings()
		for i := range vals {
			if cols[0].Valid(i) && vals[i].Len() > 0 {
				out = append(out, vals[i].String())
			}
		}
		return nil
	})
	return out, err
}

// usedColumns returns the names, __name__ among them, whose column is not empty in some matching series.
func (s *Stage) usedColumns(ctx context.Context, src *source, pred predicate) ([]string, error) {
	names := append([]string{model.MetricNameLabel}, src.columns...)
	exprs, types := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		exprs[i], types[i] = "coalesce(bool_or("+column(n)+" <> ''), false)", duck.Bool
	}
	var out []string
	sql := "SELECT " + strings.Join(exprs, ", ") + " FROM " + src.from() + pred.sql()
	err := s.db.Each(ctx, sql, types, func(_ int, cols []duck.Vector) error {
		for i, n := range names {
			if cols[i].Bools()[0] {
				out = append(out, n)
			}
		}
		return nil
	})
	return out, err
}

// limited sorts, removes duplicates and applies the limit of hints.
func limited(vals []string, hints *storage.LabelHints) []string {
	slices.Sort(vals)
	vals = slices.Compact(vals)
	if hints != nil && hints.Limit > 0 && len(vals) > hints.Limit {
		vals = vals[:hints.Limit]
	}
	return vals
}
