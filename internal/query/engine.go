package query

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
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

func newEngine(s *Settings, reg prometheus.Registerer, logger *slog.Logger) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   logger,
		Reg:                      reg,
		MaxSamples:               s.MaxSamples,
		Timeout:                  s.Timeout,
		ActiveQueryTracker:       make(gate, s.MaxConcurrency),
		LookbackDelta:            s.LookbackDelta,
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultSubqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		EnablePerStepStats:       true,
		EnableDelayedNameRemoval: s.DelayedNameRemoval,
		UseStartTimestamps:       s.UseStartTimestamps,
		Parser:                   parser.NewParser(ParserOptions()),
	})
}

// gate bounds the number of running PromQL queries. It implements promql.QueryTracker.
type gate chan struct{}

// GetMaxConcurrent implements promql.QueryTracker.
func (g gate) GetMaxConcurrent() int { return cap(g) }

// Insert waits for a place.
func (g gate) Insert(ctx context.Context, _ string) (int, error) {
	select {
	case g <- struct{}{}:
		return 0, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", cap(g), ctx.Err())
	}
}

// Delete gives a place back.
func (g gate) Delete(int) { <-g }

// Close implements io.Closer.
func (g gate) Close() error { return nil }
