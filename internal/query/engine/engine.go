// Package engine adapts upstream's PromQL engine: it admits and limits queries, pushes down the
// parts that exec can evaluate, and lets upstream evaluate the rest over the results. It also
// implements upstream's storage interfaces over the objects of a store: series, labels, exemplars,
// metadata and statistics.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/usage"
)

// DefaultSubqueryStep is the step of a subquery that names none, like Prometheus' default
// evaluation interval.
const DefaultSubqueryStep = time.Minute

// ParserOptions are those of every parser that reads users' PromQL: all of upstream's language is
// on.
func ParserOptions() parser.Options {
	return parser.Options{
		EnableExperimentalFunctions:  true,
		ExperimentalDurationExpr:     true,
		EnableExtendedRangeSelectors: true,
		EnableBinopFillModifiers:     true,
	}
}

// Engine evaluates queries with upstream's engine over what DuckDB has computed of them. Its
// queries have the statistics, the errors and the results of upstream's. It is safe for concurrent
// use.
type Engine struct {
	Queries request.Queries // that run, or wait for their turn

	settings Settings
	exec     *exec.Executor
	upstream *promql.Engine
	parser   *remembering
	measured *measured
	gate     *gate
	pieces   *gate // of pieces of other processes' queries
	usage    *usage.Counter
	workers  *divide.Workers // nil: no query is divided
	kept     *divide.Keeper  // nil: no answer is kept
}

var _ promql.QueryEngine = (*Engine)(nil)

// Settings are the limits and options of an engine. Callers fill every field.
type Settings struct {
	MaxConcurrency   int           // queries that run at once
	MaxSamples       int           // that one query holds at any moment
	MaxFetchedBytes  int64         // of objects that one query reads
	MaxSubquerySteps int64         // of one query
	QueryMemoryBytes int64         // of labels that functions add, of one query
	MinPushedSamples int64         // of a part of a query that is pushed down; -1 = none is left to the engine, math.MaxInt64 = all are
	Timeout          time.Duration // of one query
	Lookback         time.Duration // default of queries that name none
	Cost             request.CostLimits
	Allowance        func(context.Context) auth.Allowance // of the tenant; nil: none has one
	DivideBytes      int64                                // that a range query reads, by its estimate, if it is not divided over workers
	DivideWindows    int64                                // of blocks that a slice of it has at least; 0 or less = slices end anywhere
	KeptSamples      int64                                // that the series of a range query have, if its answer is not kept
	// KeptWindow is the length of the least windows of whose steps answers are kept. 0: a day.
	KeptWindow time.Duration

	DelayedNameRemoval, UseStartTimestamps bool // upstream's feature flags
}

// New returns an engine whose queries read through x, are counted by u, are divided over w and kept
// by k if these are not nil. reg may be nil.
func New(s Settings, x *exec.Executor, u *usage.Counter, w *divide.Workers, k *divide.Keeper, reg prometheus.Registerer, logger *slog.Logger) *Engine {
	p := newRemembering(ParserOptions(), !s.UseStartTimestamps)
	upstream := promql.NewEngine(promql.EngineOpts{
		Logger:                   logger,
		Reg:                      reg,
		MaxSamples:               s.MaxSamples,
		Timeout:                  s.Timeout,
		ActiveQueryTracker:       admitted(s.MaxConcurrency),
		LookbackDelta:            s.Lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return DefaultSubqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		EnablePerStepStats:       true,
		EnableDelayedNameRemoval: s.DelayedNameRemoval,
		UseStartTimestamps:       true, // the reader gives them only where they count
		Parser:                   p,
	})
	return &Engine{
		settings: s, exec: x, upstream: upstream, parser: p,
		measured: measuredBy(reg), gate: newGate(s.MaxConcurrency), pieces: newGate(s.MaxConcurrency), usage: u, workers: w, kept: k,
	}
}

// admitted is the promql.QueryTracker of queries that have passed the gate. It only returns their
// maximum.
type admitted int

// GetMaxConcurrent implements promql.QueryTracker.
func (a admitted) GetMaxConcurrent() int { return int(a) }

// Insert implements promql.QueryTracker.
func (admitted) Insert(context.Context, string) (int, error) { return 0, nil }

// Delete implements promql.QueryTracker.
func (admitted) Delete(int) {}

// Close implements io.Closer.
func (admitted) Close() error { return nil }

// NewInstantQuery implements promql.QueryEngine.
func (e *Engine) NewInstantQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, ts time.Time) (promql.Query, error) {
	return e.query(q, opts, text, parser.EvalStmt{Start: ts, End: ts}, func(v *view) (promql.Query, error) {
		return e.upstream.NewInstantQuery(ctx, v, opts, text, ts)
	})
}

// errResolution is upstream's error of /api/v1/query_range, which checks the number of steps before
// it asks the engine. Here it is checked for range queries from everywhere.
var errResolution = errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")

// NewRangeQuery implements promql.QueryEngine.
func (e *Engine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, start, end time.Time, interval time.Duration) (promql.Query, error) {
	if interval > 0 && end.Sub(start)/interval > 11_000 {
		return nil, errResolution
	}
	return e.query(q, opts, text, parser.EvalStmt{Start: start, End: end, Interval: interval}, func(v *view) (promql.Query, error) {
		return e.upstream.NewRangeQuery(ctx, v, opts, text, start, end, interval)
	})
}

// query makes a query of a text at the times of a statement. upstream makes upstream's, which most
// queries do not need.
func (e *Engine) query(of storage.Queryable, opts promql.QueryOpts, text string, asked parser.EvalStmt, upstream func(*view) (promql.Query, error)) (promql.Query, error) {
	expr, err := e.parser.parsed(text)
	if err != nil {
		return nil, err
	}
	if asked.Expr, err = promql.PreprocessExpr(plan.Clone(expr.Expr), asked.Start, asked.End, asked.Interval); err != nil {
		return nil, err
	}
	return e.prepared(of, opts, text, expr, asked, upstream)
}

// prepared makes a query of an expression whose statement has it as upstream's engine prepares it.
func (e *Engine) prepared(of storage.Queryable, opts promql.QueryOpts, text string, expr *known, asked parser.EvalStmt, upstream func(*view) (promql.Query, error)) (_ *Query, err error) {
	perStep := false
	if asked.LookbackDelta = e.settings.Lookback; opts != nil {
		perStep = opts.EnablePerStepStats()
		if d := opts.LookbackDelta(); d > 0 {
			asked.LookbackDelta = d
		}
	}
	x, _ := executorOf(of)
	q := &Query{
		exec: x, engine: e, text: text, expr: expr, asked: asked, view: &view{Queryable: of}, make: upstream,
		stats: stats.Statistics{Timers: stats.NewQueryTimers(), Samples: stats.NewQuerySamples(perStep)},
	}
	if t := expr.Type(); asked.Interval > 0 && t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		_, err = upstream(q.view) // which says that no such expression has values at steps
	}
	return q, err
}

// Close implements io.Closer.
func (e *Engine) Close() error { return e.upstream.Close() }

// executorOf returns the executor of a queryable, or of the one that it wraps, and that queryable.
// nil: there is none, and nothing is pushed down.
func executorOf(q storage.Queryable) (*exec.Executor, storage.Queryable) {
	for {
		switch x := q.(type) {
		case interface{ Executor() *exec.Executor }:
			return x.Executor(), q
		case interface{ Unwrap() storage.Queryable }:
			q = x.Unwrap()
		default:
			return nil, nil
		}
	}
}
