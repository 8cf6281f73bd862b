package engine

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// stepCount is the work that the steps of a statement's subqueries are. Numbers that do not fit are
// math.MaxInt64.
type stepCount struct {
	steps int64 // at which expressions of subqueries are evaluated, and for which upstream's engine allocates
	held  int64 // by the windows of all times at which subqueries are asked for: what functions over them walk, for each series
	most  int64 // steps of one expression, the statement's own included

	// copied is how many times upstream's engine copies the point of a series of a selector whose
	// expression has the same value at all steps, by the selector's first matcher. Nothing ends it
	// meanwhile. Selectors of which only a few series are left are not in it.
	copied map[*labels.Matcher]int64
}

// countSteps counts the steps of a statement that upstream's engine has prepared. Upstream
// evaluates the expression of a subquery once, at the steps from the first window's beginning to
// the last one's end; of nested ones, the outer one's steps are the times at which the inner one is
// evaluated.
func countSteps(s *parser.EvalStmt) stepCount {
	var c stepCount
	c.walk(s.Expr, spanOf(s), timesOf(s))
	return c
}

// isFew reports whether a node makes one series of all, or chooses a few of them.
func isFew(n parser.Node) bool {
	a, ok := n.(*parser.AggregateExpr)
	if !ok || a.Without || len(a.Grouping) > 0 {
		return false
	}
	switch a.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK:
		k, ok := plan.Constant(a.Param)
		return ok && k <= fewSeries
	case parser.COUNT_VALUES, parser.LIMIT_RATIO:
		return false
	}
	return true
}

// fewSeries is the number of series whose copies are not counted.
const fewSeries = 100

// spanOf is the time (ms) from the first to the last time of a statement.
func spanOf(s *parser.EvalStmt) int64 { return max(0, s.End.Sub(s.Start).Milliseconds()) }

// timesOf is the number of times of a statement.
func timesOf(s *parser.EvalStmt) int64 {
	if step := s.Interval.Milliseconds(); step > 0 {
		return spanOf(s)/step + 1
	}
	return 1
}

// walk counts what is evaluated at times that are span (ms) apart from the first to the last.
func (c *stepCount) walk(n parser.Node, span, times int64) {
	c.most = max(c.most, times)
	switch e := n.(type) {
	case *parser.StepInvariantExpr:
		parser.Inspect(e.Expr, func(n parser.Node, path []parser.Node) error {
			sel, ok := n.(*parser.VectorSelector)
			if ok && len(sel.LabelMatchers) > 0 && !slices.ContainsFunc(path, isFew) {
				if c.copied == nil {
					c.copied = map[*labels.Matcher]int64{}
				}
				c.copied[sel.LabelMatchers[0]] = request.Saturated(float64(c.copied[sel.LabelMatchers[0]]) + float64(times))
			}
			return nil
		})
		span, times = 0, 1
	case *parser.SubqueryExpr:
		step := e.Step.Milliseconds()
		if e.Step == 0 {
			step = DefaultSubqueryStep.Milliseconds()
		}
		step, window := max(1, step), max(0, e.Range.Milliseconds())
		c.held = request.Saturated(float64(c.held) + float64(times)*(float64(window/step)+1))
		span = request.Saturated(float64(span) + float64(window))
		times = request.Saturated(float64(span/step) + 1)
		c.steps = request.Saturated(float64(c.steps) + float64(times))
	}
	for child := range parser.ChildrenIter(n) {
		c.walk(child, span, times)
	}
}

// Bytes that upstream's engine and API allocate, and its limit.
const (
	bytesPerSubqueryStep = 48 // points of one series, and statistics of each step
	bytesPerAnswer       = 64 // of a point as JSON, in two buffers
	heldPerStep          = 10 // steps in windows for each step that subqueries may have: a second of upstream's time
)

// walkable refuses what is left to upstream's engine if its windows hold too many steps of
// subqueries: for one series, upstream walks through all of them without checking whether the query
// has ended.
func (q *Query) walkable() error {
	stmt := q.asked
	if q.left != nil {
		stmt.Expr = q.left
	}
	if limit, c := heldPerStep*q.engine.settings.MaxSubquerySteps, countSteps(&stmt); c.held > limit {
		return &request.LimitError{
			Limit: "steps in all windows of subqueries", Value: limit, Needed: c.held, Flag: subqueryFlag, Advice: "of which it is the tenfold",
		}
	}
	return nil
}

const subqueryFlag = "--query.max-subquery-steps"
