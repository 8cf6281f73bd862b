package plan

import (
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Grid is N times at which an expression is evaluated: the first is Start (ms), the distance is
// Step (ms).
type Grid struct {
	Start, Step int64
	N           int
}

// End returns the last time (ms).
func (g Grid) End() int64 { return g.Start + int64(g.N-1)*g.Step }

// String formats the grid as in the spec strings of statements.
func (g Grid) String() string { return string(g.appendText(nil)) }

func (g Grid) appendText(b []byte) []byte {
	b = strconv.AppendInt(append(b, "start="...), g.Start, 10)
	b = strconv.AppendInt(append(b, " step="...), g.Step, 10)
	return strconv.AppendInt(append(b, " n="...), int64(g.N), 10)
}

// Options are the settings of a query's evaluation. Those that upstream's engine has too must equal
// the engine's.
type Options struct {
	// Start, End and Step of the query, in ms. An instant query has Start == End and Step 0.
	Start, End, Step int64
	// Lookback is how long a sample is the value of its series.
	Lookback time.Duration
	// DefaultSubqueryStep is the step of a subquery that has none.
	DefaultSubqueryStep time.Duration
	// DelayedNames and StartTimestamps are upstream's feature flags promql-delayed-name-removal and
	// use-start-timestamps.
	DelayedNames, StartTimestamps bool
	// MinRows is the least number of samples, in total over its selectors, for which a subtree is
	// pushed; 0 pushes every subtree.
	MinRows int64
	// Kernels pushes functions over the samples of one selector however few samples there are: a
	// kernel evaluates them without a statement, faster than the engine.
	Kernels bool
	// MaxRows bounds the samples that a statement reads; 0 is no bound. A subtree that has more,
	// and cannot be divided into parts within the bound (Partition), is left to the engine and its
	// children are pushed. A single series is not divided.
	MaxRows int64
	// Ended, if not nil, reports whether the query was abandoned: then the rest of it is not
	// compiled.
	Ended func() bool
	// EngineQuantiles leaves histogram_quantile to the engine. It is set after a statement failed
	// with ErrForcedMonotonicity.
	EngineQuantiles bool
}

// seconds returns the times of the steps, as upstream calculates them.
func (g Grid) seconds(room vector.Room) vector.Row {
	v := room(g.N)
	for k := range v {
		v[k] = float64(g.Start+int64(k)*g.Step) / 1000
	}
	return vector.Row{V: v}
}
