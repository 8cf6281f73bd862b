package sql

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
)

// partTable is the name by which a statement mentions its part of a table.
const partTable = "promlake_part"

// Slices cuts a statement into at most n statements for any processes over the store, whose rows
// are together those of the statement. It runs none. A statement has no slices if it does not make
// each row from one sample, or from one value of promql(), or reads at most --query.divide-bytes.
// Errors are those of Run.
func (r *Runner) Slices(ctx context.Context, q request.Statement, n int) (out *explain.Sliced, err error) {
	err = r.prepared(ctx, q, nil, func(x *execution) error {
		var bad interface{ BadQuery() bool }
		out, err = x.slices(n)
		switch {
		case errors.As(err, &bad): // the statement itself may do
			out.Undivided = err.Error()
		case err != nil:
			return x.because(err)
		case len(out.Slices) > 1:
			return nil
		}
		request.From(x.ctx).Origin.Part.Store(true) // the statement counts when it runs
		out.Undivided = cmp.Or(out.Undivided, "the statement reads at most --query.divide-bytes, or few windows of blocks")
		out.Slices = []explain.Slice{}
		return nil
	})
	return out, err
}

// slices returns the slices of a statement that is checked.
func (x *execution) slices(n int) (*explain.Sliced, error) {
	none := &explain.Sliced{Undivided: "the statement does not make each row from one sample of a selector, or from one value of promql()"}
	over := x.stmt.Over(partTable)
	if over == nil {
		return none, nil
	}
	if err := x.plan(); err != nil || !x.rowwise {
		return none, err
	}
	now, err := x.text("SELECT now()::VARCHAR") // of the transaction of the plan
	if err != nil {
		return none, err
	}
	tree, err := over(string(now))
	if err != nil {
		return none, err
	}
	text, err := x.text("SELECT json_deserialize_sql(" + duck.Literal(string(tree)) + ")")
	if err != nil {
		return none, err
	}
	ask, err := x.asks()
	if err != nil || ask == nil {
		return none, err
	}
	out, err := explain.Slices(x.ctx, x.Engine, x.Queryable, *ask, n, true)
	if err != nil {
		return none, err
	}
	for i := range out.Slices {
		out.Slices[i].SQL = "WITH " + partTable + " AS NOT MATERIALIZED (" + out.Slices[i].SQL + ") " + string(text)
	}
	return out, nil
}

// asks returns what the only table of a planned statement asks for: a range query, or the samples
// of a selector; nil if there are several selectors, or no samples.
func (x *execution) asks() (*request.Question, error) {
	if len(x.calls) > 0 {
		p := x.calls[0]
		return &request.Question{Text: p.text, Start: p.start, End: p.end, Step: p.step}, nil
	}
	if len(x.scans[0].constraint.Sets) > 1 {
		return nil, nil
	}
	c := x.scans[0].constraint
	selector := parser.VectorSelector{LabelMatchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, "")}}
	for _, set := range c.Sets {
		selector.LabelMatchers = append(selector.LabelMatchers, set...)
	}
	first, last := key.MaxTime, key.MinTime // of what is stored, for conditions without bounds
	_, err := x.Snapshots.Range(c.MinT, c.MaxT).Read(x.ctx, func(snap catalog.Snapshot) error {
		for _, s := range snap.Segments {
			first, last = min(first, int64(s.Window)), max(last, int64(s.Window)+key.WindowMillis-1)
		}
		for _, b := range snap.Blocks {
			from, upto := b.Times()
			first, last = min(first, from), max(last, upto)
		}
		return nil
	})
	if first, last = max(first, c.MinT), min(last, c.MaxT); err != nil || first > last {
		return nil, err
	}
	return &request.Question{Text: selector.String(), Start: time.UnixMilli(first), End: time.UnixMilli(last)}, nil
}
