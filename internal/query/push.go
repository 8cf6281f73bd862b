package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
)

// push evaluates in DuckDB what can be, and changes the statement to what is left. A query of which
// nothing can be is as it was. The annotations are those of replanning.
func (q *pushedQuery) push(ctx context.Context) (notes annotations.Annotations, err error) {
	if q.stage == nil || q.stmt == nil || !q.steps() {
		return nil, nil
	}
	expr, err := q.engine.parser.ParseExpr(q.String())
	if err != nil {
		return nil, fmt.Errorf("parse again: %w", err)
	}
	if mentions(expr, plan.PushedLabel) {
		return nil, nil // what upstream's engine asks for by this label must be ours
	}
	mint, maxt := promql.FindMinMaxTime(q.stmt)
	reader := q.stage.newQuerier(mint, maxt)
	err = q.stage.metrics.Measure("push", func() (err error) {
		notes, err = reader.Read(ctx, func(snap catalog.Snapshot) error {
			p := &pushing{stage: q.stage, querier: reader, snap: snap}
			err := q.pushOn(ctx, p, expr, q.options(ctx))
			if !errors.Is(err, plan.ErrForcedMonotonicity) {
				return err
			}
			o := q.options(ctx)
			o.EngineQuantiles = true
			return q.pushOn(ctx, p, expr, o)
		})
		return err
	})
	return notes, storageError(err)
}

// steps says that upstream evaluates the statement at finitely many times.
func (q *pushedQuery) steps() bool { return q.asked.Interval > 0 || q.asked.Start.Equal(q.asked.End) }

func (q *pushedQuery) options(ctx context.Context) plan.Options {
	s := &q.engine.stage.settings
	return plan.Options{
		Start: timestamp.FromTime(q.asked.Start), End: timestamp.FromTime(q.asked.End), Step: q.asked.Interval.Milliseconds(),
		Lookback: q.asked.LookbackDelta, DefaultSubqueryStep: defaultSubqueryStep,
		DelayedNames: s.DelayedNameRemoval, StartTimestamps: s.UseStartTimestamps, MinRows: max(s.MinPushedSamples, 0),
		Ended: func() bool { return ctx.Err() != nil },
	}
}

// pushOn is push on one snapshot.
func (q *pushedQuery) pushOn(ctx context.Context, p *pushing, expr parser.Expr, o plan.Options) error {
	timers := q.Stats().Timers
	prepare := timers.GetTimer(stats.QueryPreparationTime).Start()
	planned, err := plan.Prepare(expr, o)
	if err != nil {
		return err
	}
	pl, err := p.plan(ctx, planned)
	prepare.Stop()
	if err != nil {
		return err
	}
	inner := timers.GetTimer(stats.InnerEvalTime).Start()
	results, err := p.evaluate(ctx, pl, planned)
	inner.Stop()
	if err != nil {
		return err
	}
	q.view.snap = &p.snap
	if len(results) == 0 {
		q.stage.metrics.Kept.Inc()
		return nil
	}
	left, err := promql.PreprocessExpr(pl.Expr, q.asked.Start, q.asked.End, q.asked.Interval)
	if err != nil {
		return fmt.Errorf("prepare what is left: %w", err)
	}
	q.view.results, q.stmt.Expr = results, left
	return nil
}

// mentions says that an expression has a matcher on a label.
func mentions(expr parser.Expr, label string) bool {
	found := false
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				found = found || m.Name == label
			}
		}
		return nil
	})
	return found
}

// storageError gives a failure of a pushed statement the type by which upstream's API answers it.
func storageError(err error) error {
	var limit *request.LimitError
	var old *snapshot.TooOldError
	var full *fetch.FullError
	var process *memory.Error
	if err == nil || errors.As(err, &process) || errors.As(err, &limit) || errors.As(err, &old) || errors.As(err, &full) && full.QueryLimit() || isPromQL(err) {
		return err
	}
	return &failedRead{err}
}

// failedRead is promql.ErrStorage that can be unwrapped.
type failedRead struct{ err error }

// Error implements error.
func (e *failedRead) Error() string { return e.err.Error() }

// Unwrap returns the error as upstream knows it and as it is.
func (e *failedRead) Unwrap() []error { return []error{promql.ErrStorage{Err: e.err}, e.err} }
