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
	stage    *Stage
	upstream *promql.Engine
	parser   parser.Parser
	gate     *gate
}

var _ promql.QueryEngine = (*engine)(nil)

func newEngine(stage *Stage, reg prometheus.Registerer, logger *slog.Logger) *engine {
	s, p := &stage.settings, parser.NewParser(ParserOptions())
	return &engine{
		stage: stage, parser: p, gate: newGate(s.MaxConcurrency),
		upstream: promql.NewEngine(promql.EngineOpts{
			Logger:                   logger,
			Reg:                      reg,
			MaxSamples:               s.MaxSamples,
			Timeout:                  s.Timeout,
			ActiveQueryTracker:       admitted(s.MaxConcurrency),
			LookbackDelta:            s.LookbackDelta,
			NoStepSubqueryIntervalFn: func(int64) int64 { return defaultSubqueryStep.Milliseconds() },
			EnableAtModifier:         true,
			EnableNegativeOffset:     true,
			EnablePerStepStats:       true,
			EnableDelayedNameRemoval: s.DelayedNameRemoval,
			UseStartTimestamps:       s.UseStartTimestamps,
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
	q := &pushedQuery{Query: up, engine: e, view: v, stage: stageOf(v.Queryable)}
	if stmt, ok := up.Statement().(*parser.EvalStmt); ok {
		q.stmt, q.asked = stmt, *stmt
	}
	return q
}

// Close implements io.Closer.
func (e *engine) Close() error { return e.upstream.Close() }

// self lets the engine know a Stage that is embedded in another type.
func (s *Stage) self() *Stage { return s }

// stageOf returns the stage that a queryable is or wraps, nil if it is another storage: from that nothing is pushed down.
func stageOf(q storage.Queryable) *Stage {
	for {
		switch x := q.(type) {
		case interface{ self() *Stage }:
			return x.self()
		case interface{ Unwrap() storage.Queryable }:
			q = x.Unwrap()
		default:
			return nil
		}
	}
}
