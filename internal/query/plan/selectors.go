package plan

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/format/series"
)

// Selector is a selector of a query, to be resolved to series before planning.
type Selector struct {
	Expr     *parser.VectorSelector
	Matchers []*labels.Matcher
	// MinT and MaxT bound the samples that the query may use, in ms, both inclusive.
	MinT, MaxT int64
	// Times are the ends of the windows that the query reads, one for each evaluation.
	Times Grid
	// Range is the length of these windows in ms. 0: the query reads one sample at each time.
	Range int64
}

// Series is a stored series.
type Series struct {
	ID     uint64 // by which the caller knows it
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
	others    []Selector // that no statement can read
}

// New makes a query of an expression that upstream's PreprocessExpr has prepared for the times of
// the query. The plan may share parts of it.
func New(expr parser.Expr, o Options) *Query {
	q := &Query{expr: expr, options: o, selectors: make([]Selector, 0, 2)}
	q.collect(expr, o.top(), &q.selectors)
	return q
}

// Selectors returns the selectors of subtrees that may be pushed, in the order of the query's text.
func (q *Query) Selectors() []Selector { return q.selectors }

// Others returns the selectors of subtrees that only the engine can evaluate. Expr is nil for the
// series that info() selects on its own.
func (q *Query) Others() []Selector { return q.others }

// Steps returns the number of steps of the query.
func (q *Query) Steps() int { return q.options.top().grid().N }

// Bound sets Options.MaxRows, which may depend on the resolutions of the selectors.
func (q *Query) Bound(maxRows int64) { q.options.MaxRows = maxRows }

// collect gathers in a list the selectors of an expression that is evaluated at a place.
func (q *Query) collect(expr parser.Expr, at place, in *[]Selector) {
	if at.empty() {
		return
	}
	switch e := expr.(type) {
	case *parser.StepInvariantExpr:
		q.collect(e.Expr, at.once(), in)
	case *parser.VectorSelector:
		q.add(e, at, 0, in)
	case *parser.SubqueryExpr:
		q.collect(e.Expr, at.within(e, q.options.DefaultSubqueryStep), in)
	case *parser.Call:
		if opaque(e.Func.Name) {
			in = &q.others
		}
		_, known := Ranges[e.Func.Name]
		for i, a := range e.Args {
			switch m, ok := a.(*parser.MatrixSelector); {
			case ok && known:
				q.add(m.VectorSelector.(*parser.VectorSelector), at, m.Range, in)
			case e.Func.Name != "info" || i == 0:
				q.collect(a, at, in)
			}
		}
		if e.Func.Name == "info" {
			q.addInfo(e, at)
		}
	case *parser.AggregateExpr: // the parameter precedes the vector in the text
		if e.Param != nil {
			q.collect(e.Param, at, in)
		}
		q.collect(e.Expr, at, in)
	case *parser.MatrixSelector: // a bare range selector: only the engine can return ranges
		q.add(e.VectorSelector.(*parser.VectorSelector), at, e.Range, &q.others)
	default:
		for c := range parser.ChildrenIter(expr) {
			q.collect(c.(parser.Expr), at, in)
		}
	}
}

// add appends a selector that reads a range before each time of a place, or one sample if that is
// 0.
func (q *Query) add(e *parser.VectorSelector, at place, window time.Duration, to *[]Selector) {
	offset, lookback := at.offset(e.Timestamp, e.OriginalOffset), q.options.Lookback
	s := Selector{Expr: e, Matchers: e.LabelMatchers, Times: at.grid(), Range: window.Milliseconds()}
	s.Times.Start -= offset
	if window == 0 {
		window = lookback
	}
	s.MinT, s.MaxT = s.Times.Start-window.Milliseconds()+1, s.Times.End()
	if extended(e) { // it reads as much as the lookback before its window, and if smoothed also after
		to = &q.others
		s.Range = window.Milliseconds() + 2*lookback.Milliseconds()
		s.MinT -= lookback.Milliseconds()
		s.MaxT += lookback.Milliseconds()
	}
	*to = append(*to, s)
}

// addInfo appends the series that info() selects beside those of its first argument.
func (q *Query) addInfo(e *parser.Call, at place) {
	s := Selector{Times: at.grid()}
	if len(e.Args) > 1 {
		s.Matchers = e.Args[1].(*parser.VectorSelector).LabelMatchers
	}
	if !slices.ContainsFunc(s.Matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel }) {
		s.Matchers = append(slices.Clip(s.Matchers), labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "target_info"))
	}
	s.MinT, s.MaxT = s.Times.Start-q.options.Lookback.Milliseconds()+1, s.Times.End()
	q.others = append(q.others, s)
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
