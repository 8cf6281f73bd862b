package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/store/catalog"
)

// push evaluates below upstream's engine what can be, and keeps what is left for the engine. The
// annotations name damaged objects that were left out.
func (q *Query) push(ctx context.Context) (notes annotations.Annotations, err error) {
	finite := q.asked.Interval > 0 || q.asked.Start.Equal(q.asked.End)
	if q.exec == nil || !finite || q.expr.own {
		return nil, nil
	}
	if tenant.Several(ctx) { // their series are made by what the engine reads
		return nil, StorageError(q.affordableOfAll(ctx))
	}
	err = q.exec.Metrics.Measure("push", func() (err error) {
		notes, err = q.Attempt(ctx, func(p *exec.Attempt) error { return q.pushOnce(ctx, p) })
		return err
	})
	return notes, StorageError(err)
}

// pushOnce is push on one snapshot.
func (q *Query) pushOnce(ctx context.Context, p *exec.Attempt) error {
	defer p.Release()
	p.Recent = true
	o := q.Options(ctx)
	q.keeping = q.keepable(ctx, p)
	if k := q.keeping; k != nil && q.expr.large.Load() && !q.limited(ctx) && q.cut(ctx, p, k) { // as before: it needs no plan
		parts, err := q.fromKept(ctx, p, k)
		if q.parts = parts; err != nil || parts != nil {
			return err
		}
	}
	pl, results, err := q.pushed(ctx, p, o)
	if errors.Is(err, plan.ErrForcedMonotonicity) {
		o.EngineQuantiles = true
		pl, results, err = q.pushed(ctx, p, o)
	}
	if err != nil {
		return err
	}
	q.view.snap, q.view.wide = p.Snap, p.Wide
	if q.parts != nil {
		return nil
	}
	if len(results) == 0 {
		q.exec.Metrics.Kept.Inc()
		return nil
	}
	q.view.results, q.view.whole = results, q.whole(pl.Expr, results)
	if q.view.whole != nil {
		return nil
	}
	if q.left, err = promql.PreprocessExpr(plan.Clone(pl.Expr), q.asked.Start, q.asked.End, q.asked.Interval); err != nil {
		return fmt.Errorf("prepare what is left: %w", err)
	}
	return nil
}

// pushed plans the query and evaluates its pushed subtrees.
func (q *Query) pushed(ctx context.Context, p *exec.Attempt, o plan.Options) (*plan.Plan, []*exec.Result, error) {
	prepare := q.stats.Timers.GetTimer(stats.QueryPreparationTime).Start()
	planned := plan.New(q.asked.Expr, o)
	pl, err := p.Plan(ctx, planned)
	prepare.Stop()
	if err == nil && q.piece != nil && p.HasDeltas() { // beside slices whose answers were kept
		err = fmt.Errorf("%w: there are series of delta temporality", divide.ErrWhole)
	}
	if err == nil {
		err = q.affordable(ctx, p, pl, planned)
	}
	if err == nil {
		q.parts, err = q.partlyKept(ctx, p)
	}
	if err == nil && q.parts == nil {
		q.parts, err = q.divided(ctx, p, pl, planned)
	}
	if err != nil || q.parts != nil {
		return pl, nil, err
	}
	inner := q.stats.Timers.GetTimer(stats.InnerEvalTime).Start()
	defer inner.Stop()
	results, err := p.Evaluate(ctx, pl, planned)
	return pl, results, err
}

// limited reports whether a limit of the query's cost, or its quote, needs an estimate.
func (q *Query) limited(ctx context.Context) bool {
	r := request.From(ctx)
	return r.Limits.Within(q.engine.settings.Cost) != request.CostLimits{} || r.Quote != nil
}

// affordable estimates the query if it is limited, and refuses it if it exceeds a limit.
func (q *Query) affordable(ctx context.Context, p *exec.Attempt, pl *plan.Plan, planned *plan.Query) error {
	if !q.limited(ctx) {
		return nil
	}
	_, e, err := p.Price(ctx, pl, planned)
	if err != nil {
		return err
	}
	r := request.From(ctx)
	return r.Quote.Accept(e, r.Limits.Within(q.engine.settings.Cost))
}

// affordableOfAll is affordable for a query of several tenants, with the sum of their estimates.
// The selectors count as if they named no tenants.
func (q *Query) affordableOfAll(ctx context.Context) error {
	if !q.limited(ctx) {
		return nil
	}
	expr := plan.Clone(q.expr.Expr)
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			s.LabelMatchers = slices.DeleteFunc(slices.Clone(s.LabelMatchers), func(m *labels.Matcher) bool { return m.Name == tenant.Label })
		}
		return nil
	})
	expr, err := promql.PreprocessExpr(expr, q.asked.Start, q.asked.End, q.asked.Interval)
	if err != nil {
		return err
	}
	var sum request.Estimate
	for _, id := range tenant.All(ctx) {
		ctx, e := tenant.With(ctx, id), request.Estimate{}
		_, err := q.Attempt(ctx, func(p *exec.Attempt) error {
			defer p.Release()
			planned := plan.New(expr, q.Options(ctx))
			pl, err := p.Plan(ctx, planned)
			if err == nil {
				_, e, err = p.Price(ctx, pl, planned)
			}
			return err
		})
		if err != nil {
			return err
		}
		sum.Add(e)
	}
	r := request.From(ctx)
	return r.Quote.Accept(sum, r.Limits.Within(q.engine.settings.Cost))
}

// Attempt calls fn with an attempt on a snapshot of the query's time range, and again as
// snapshot.Range.Read does.
func (q *Query) Attempt(ctx context.Context, fn func(*exec.Attempt) error) (annotations.Annotations, error) {
	span := q.exec.Snapshots.Range(promql.FindMinMaxTime(&q.asked))
	return span.ReadWide(ctx, func(snap *catalog.Snapshot, wide bool) error { return fn(q.exec.Attempt(span, snap, wide)) })
}

// Options returns what the planner must know of the query.
func (q *Query) Options(ctx context.Context) plan.Options {
	s := &q.engine.settings
	return plan.Options{
		Start: timestamp.FromTime(q.asked.Start), End: timestamp.FromTime(q.asked.End), Step: q.asked.Interval.Milliseconds(),
		Lookback: q.asked.LookbackDelta, DefaultSubqueryStep: DefaultSubqueryStep,
		DelayedNames: s.DelayedNameRemoval, StartTimestamps: s.UseStartTimestamps, MinRows: max(s.MinPushedSamples, 0),
		Kernels: s.MinPushedSamples < math.MaxInt64,
		Ended:   func() bool { return ctx.Err() != nil },
	}
}

// StorageError gives a failure of a pushed statement the type by which upstream's API answers it.
func StorageError(err error) error {
	if err == nil {
		return nil
	}
	var limit *request.LimitError
	var old *snapshot.TooOldError
	var full *fetch.FullError
	var process *memory.Error
	if errors.As(err, &process) || errors.As(err, &limit) || errors.As(err, &old) || errors.As(err, &full) && full.QueryLimit() || isPromQL(err) {
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
