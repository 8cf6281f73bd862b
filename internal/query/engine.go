package query

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// defaultSubqueryStep is the resolution of a subquery that names none, as Prometheus' default evaluation interval.
const defaultSubqueryStep = time.Minute

// ParserOptions are those of every parser that reads users' PromQL: all of upstream's language is on.
func ParserOptions() parser.Options {
	return parser.Options{
		EnableExperimentalFunctions:  true,
		ExperimentalDurationExpr:     true,
		EnableExtendedRangeSelectors: true,
		EnableBinopFillModifiers:     true,
	}
}

// engine is upstream's engine, which evaluates what the planner leaves of a query over what DuckDB has computed of the rest. Its queries
// are upstream's but for where their values come from: what they say of themselves, how they fail, and what they answer.
type engine struct {
	settings engineSettings
	exec     *executor
	upstream *promql.Engine
	parser   parser.Parser
	gate     *gate
}

var _ promql.QueryEngine = (*engine)(nil)

// engineSettings are the limits and options of an engine. Callers fill every field.
type engineSettings struct {
	maxConcurrency   int           // queries that run at once
	maxSamples       int           // that one query holds at any moment
	maxFetchedBytes  int64         // of objects that one query reads
	maxSubquerySteps int64         // of one query
	queryMemoryBytes int64         // of labels that functions add, of one query
	minPushedSamples int64         // of a part of a query that is pushed down; -1 = none is left to the engine
	timeout          time.Duration // of one query
	lookback         time.Duration // default of queries that name none

	delayedNameRemoval, useStartTimestamps bool // upstream's feature flags
}

func newEngine(s engineSettings, x *executor, reg prometheus.Registerer, logger *slog.Logger) *engine {
	p := parser.NewParser(ParserOptions())
	return &engine{
		settings: s, exec: x, parser: p, gate: newGate(s.maxConcurrency),
		upstream: promql.NewEngine(promql.EngineOpts{
			Logger:                   logger,
			Reg:                      reg,
			MaxSamples:               s.maxSamples,
			Timeout:                  s.timeout,
			ActiveQueryTracker:       admitted(s.maxConcurrency),
			LookbackDelta:            s.lookback,
			NoStepSubqueryIntervalFn: func(int64) int64 { return defaultSubqueryStep.Milliseconds() },
			EnableAtModifier:         true,
			EnableNegativeOffset:     true,
			EnablePerStepStats:       true,
			EnableDelayedNameRemoval: s.delayedNameRemoval,
			UseStartTimestamps:       s.useStartTimestamps,
			Parser:                   p,
		}),
	}
}

// admitted is the promql.QueryTracker of queries that are through the gate: it only says how many there are at most.
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
func (e *engine) NewInstantQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, ts time.Time) (promql.Query, error) {
	v := &view{Queryable: q}
	up, err := e.upstream.NewInstantQuery(ctx, v, opts, text, ts)
	if err != nil {
		return nil, err
	}
	return e.query(up, v), nil
}

// NewRangeQuery implements promql.QueryEngine.
func (e *engine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, text string, start, end time.Time, interval time.Duration) (promql.Query, error) {
	v := &view{Queryable: q}
	up, err := e.upstream.NewRangeQuery(ctx, v, opts, text, start, end, interval)
	if err != nil {
		return nil, err
	}
	return e.query(up, v), nil
}

func (e *engine) query(up promql.Query, v *view) promql.Query {
	q := &pushedQuery{Query: up, engine: e, view: v, exec: executorOf(v.Queryable)}
	if stmt, ok := up.Statement().(*parser.EvalStmt); ok {
		q.stmt, q.asked = stmt, *stmt
	}
	return q
}

// Close implements io.Closer.
func (e *engine) Close() error { return e.upstream.Close() }

// executorOf returns the executor of a queryable or of what it wraps, nil if it has none: from other
// storages nothing is pushed down.
func executorOf(q storage.Queryable) *executor {
	for {
		switch x := q.(type) {
		case interface{ Executor() *executor }:
			return x.Executor()
		case interface{ Unwrap() storage.Queryable }:
			q = x.Unwrap()
		default:
			return nil
		}
	}
}
