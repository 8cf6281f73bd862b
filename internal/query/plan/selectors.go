package plan

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/format/series"
)

// Selector is a selector of a query, to be resolved to series before planning.
type Selector struct {
	Expr     *parser.VectorSelector
	Matchers []*labels.Matcher
	// MinT and MaxT bound the samples that the query may use, in ms, both inclusive.
	MinT, MaxT int64
}

// Series is a stored series.
type Series struct {
	ID     uint64 // equal in all objects of the resolution
	Labels labels.Labels
	// Place orders series as they are stored, so that a part of a subtree reads neighbours. All 0:
	// the order is not known.
	Place int64
}

// Resolution is the stored data of a selector.
type Resolution struct {
	// Series are those with samples that may be in range, ordered by labels.Compare. Labels and IDs
	// are distinct.
	Series []Series
	// Rows is the approximate number of float samples in range.
	Rows int64
	// Starts: some samples have a start timestamp. Functions of counters need those if
	// Options.StartTimestamps is set.
	Starts bool
	// Refused is the reason not to push the selector; "" if it can be pushed.
	Refused string
}

// Query is an expression ready for planning.
type Query struct {
	expr      parser.Expr // after upstream's PreprocessExpr; may be shared, so nobody changes it
	options   Options
	selectors []Selector
}

// Prepare preprocesses a copy of a parsed expression for planning. The plan may share parts of it.
// Errors are those of upstream's PreprocessExpr.
func Prepare(expr parser.Expr, o Options) (*Query, error) {
	if !o.Settled {
		step := time.Duration(o.Step) * time.Millisecond
		own, err := promql.PreprocessExpr(Clone(expr), time.UnixMilli(o.Start).UTC(), time.UnixMilli(o.End).UTC(), step)
		if err != nil {
			return nil, fmt.Errorf("prepare the expression: %w", err)
		}
		expr = own
	}
	q := &Query{expr: expr, options: o, selectors: make([]Selector, 0, 2)}
	q.collect(expr, o.top())
	return q, nil
}

// Selectors returns the selectors of subtrees that may be pushed, in the order of the query's text.
func (q *Query) Selectors() []Selector { return q.selectors }

// Steps returns the number of steps of the query.
func (q *Query) Steps() int { return q.options.top().grid().N }

// Flat reports whether the query has one time and no subqueries.
func (q *Query) Flat() bool { return q.options.Settled && q.options.Step <= 0 }

// Bound sets Options.MaxRows, which may depend on the resolutions of the selectors.
func (q *Query) Bound(maxRows int64) { q.options.MaxRows = maxRows }

// collect gathers the selectors of an expression that is evaluated at a place.
func (q *Query) collect(expr parser.Expr, at place) {
	if at.empty() {
		return
	}
	switch e := expr.(type) {
	case *parser.StepInvariantExpr:
		q.collect(e.Expr, at.once())
	case *parser.VectorSelector:
		q.add(e, at, q.options.Lookback)
	case *parser.SubqueryExpr:
		q.collect(e.Expr, at.within(e, q.options.DefaultSubqueryStep))
	case *parser.Call:
		if opaque(e.Func.Name) {
			return
		}
		_, known := Ranges[e.Func.Name]
		for _, a := range e.Args {
			m, ok := a.(*parser.MatrixSelector)
			switch {
			case !ok:
				q.collect(a, at)
			case known:
				q.add(m.VectorSelector.(*parser.VectorSelector), at, m.Range)
			}
		}
	case *parser.AggregateExpr: // the parameter precedes the vector in the text
		if e.Param != nil {
			q.collect(e.Param, at)
		}
		q.collect(e.Expr, at)
	case *parser.MatrixSelector: // a bare range selector: only the engine can return ranges
	default:
		for c := range parser.ChildrenIter(expr) {
			q.collect(c.(parser.Expr), at)
		}
	}
}

// add appends a selector that reads a window (lookback or range) before each time of a place.
func (q *Query) add(e *parser.VectorSelector, at place, window time.Duration) {
	if extended(e) {
		return
	}
	offset := at.offset(e.Timestamp, e.OriginalOffset)
	q.selectors = append(q.selectors, Selector{
		Expr: e, Matchers: e.LabelMatchers,
		MinT: at.start - offset - window.Milliseconds() + 1, MaxT: at.grid().End() - offset,
	})
}

// extended reports whether a selector reads samples outside its window (anchored, smoothed).
// Statements do not.
func extended(e *parser.VectorSelector) bool { return e.Anchored || e.Smoothed }

// opaque reports whether a function needs more than the values of its argument's selectors, so that
// nothing below it is pushed.
func opaque(name string) bool { return name == "info" || name == "start_timestamp" }

// needsStarts reports whether a function reads the start timestamps of samples. Statements do not.
func (o Options) needsStarts(name string) bool {
	return o.StartTimestamps && series.ReadsTotals(name)
}
