package plan

import (
	"fmt"
	"time"
)

// Grid is the times at which an expression is evaluated: N of them, from Start (ms) on, Step (ms)
// apart.
type Grid struct {
	Start, Step int64
	N           int
}

// End returns the last time (ms).
func (g Grid) End() int64 { return g.Start + int64(g.N-1)*g.Step }

// String returns the grid as in the spec strings of statements.
func (g Grid) String() string { return fmt.Sprintf("start=%d step=%d n=%d", g.Start, g.Step, g.N) }

// Options say how a query is evaluated. Those that upstream's engine has as well must be the
// engine's.
type Options struct {
	// Start, End and Step are of the query, in ms. An instant query has Start == End and Step 0.
	Start, End, Step int64
	// Lookback is the age at which a sample is no longer a series' value.
	Lookback time.Duration
	// DefaultSubqueryStep is the resolution of a subquery that names none.
	DefaultSubqueryStep time.Duration
	// DelayedNames and StartTimestamps are upstream's feature flags promql-delayed-name-removal and
	// use-start-timestamps.
	DelayedNames, StartTimestamps bool
	// MinRows leaves a subtree to the engine whose selectors have fewer samples than this in total;
	// 0 pushes everything.
	MinRows int64
	// MaxRows bounds the samples that a statement reads: a subtree that has more, and cannot be
	// computed in parts that have at most as many (Partition), is left to the engine and its
	// children are pushed; 0 is no bound. A single series is not cut.
	MaxRows int64
	// Ended says that nobody waits for the plan any more: then the rest is left to the engine. nil:
	// somebody does.
	Ended func() bool
	// EngineQuantiles leaves histogram_quantile to the engine, for when a statement has failed with
	// ErrForcedMonotonicity.
	EngineQuantiles bool
}
