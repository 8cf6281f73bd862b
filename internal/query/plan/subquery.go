package plan

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// maxInnerSteps bounds the steps of a subquery's expression: as many as a list may have.
const maxInnerSteps = 1 << 24

// overNode is a function of ranges over the values of a subquery.
type overNode struct {
	unary
	fn    string // prom_<fn> of samples
	inner Grid   // the grid of the values of in
	spec  Spec   // which of them each step's window holds
}

// compileSubqueryCall compiles a function of a range over a subquery.
// Source: evaluator.evalSubquery in upstream's promql/engine.go.
func compileSubqueryCall(b *building, e *parser.Call, at place) (Node, string) {
	params, window, reason := RangeArgs(e)
	if reason != "" {
		return nil, reason
	}
	s, ok := window.(*parser.SubqueryExpr)
	if !ok {
		return nil, "a " + parser.DocumentedType(window.Type()) + " is evaluated by the engine"
	}
	name, within := e.Func.Name, at.within(s, b.options.DefaultSubqueryStep)
	switch {
	case b.options.needsStarts(name):
		return nil, name + "() reads start timestamps"
	case s.Timestamp != nil && at.grid().N > 1:
		// upstream reads the values at the first step only
		return nil, name + "() of one range at several steps"
	case within.empty():
		return nil, "the subquery has no steps"
	case within.grid().N > maxInnerSteps:
		return nil, fmt.Sprintf("the subquery has %d steps, more than %d", within.grid().N, maxInnerSteps)
	}
	within.unordered = true
	in, reason := b.compile(s.Expr, within)
	if reason != "" {
		return nil, reason
	}
	n := &overNode{unary: unary{shaped: shaped{Shape{Grid: at.grid()}}, in: in}, fn: name, inner: within.grid()}
	n.spec = Spec{Grid: at.grid(), Offset: windowOffset(s, at), Window: s.Range.Milliseconds(), Params: params}
	return n.complete(b, e)
}

// windowOffset returns the time (ms) from the end of a subquery's window to the evaluation time.
func windowOffset(s *parser.SubqueryExpr, at place) int64 {
	offset := s.OriginalOffset.Milliseconds()
	if s.Timestamp != nil {
		offset += at.start - *s.Timestamp
	}
	return offset
}

// complete sets the shape of the node.
func (n *overNode) complete(b *building, e *parser.Call) (Node, string) {
	from := n.in.Shape()
	n.shape.Labels, n.shape.Drop = from.Labels, from.Drop
	var reason string
	if !Ranges[n.fn].KeepsName {
		if n.shape.Labels, n.shape.Drop, reason = b.withoutNames(from, false); reason != "" {
			return nil, reason
		}
	}
	notes := from.notes
	if !n.seesAll() {
		if notes, reason = from.independentNotes(); reason != "" {
			return nil, reason
		}
	}
	n.shape.notes = append(notes[:len(notes):len(notes)], overNotes(e, n.spec.Params, from.Labels)...)
	return n, ""
}

// seesAll reports whether a series has a result if its expression has any value: every value is in
// some window, and one value is enough for the function.
func (n *overNode) seesAll() bool {
	switch n.fn {
	case "rate", "increase", "delta", "irate", "idelta", "deriv", "predict_linear", "double_exponential_smoothing":
		return false
	}
	return n.spec.Grid.N == 1 || n.spec.Grid.Step <= n.spec.Window
}

// overNotes returns the annotations of a function over the values of series with the given labels.
// Upstream's infos about counters have no position here.
func overNotes(e *parser.Call, params []Param, in []labels.Labels) []note {
	switch e.Func.Name {
	case "rate", "increase":
		series := make([]Series, len(in))
		for i, l := range in {
			series[i].Labels = l
		}
		return nonCounters(series, posrange.PositionRange{})
	case "quantile_over_time":
		return quantileNotes(params[0].Value, e.Args[0].PositionRange(), len(in))
	}
	return nil
}

// String implements Node.
func (n *overNode) String() string {
	return fmt.Sprintf("%s %s over %s", n.fn, n.spec, n.inner)
}

func (n *overNode) feeds(int) []uint32 { return all(len(n.shape.Labels)) }

func (n *overNode) sql(b *builder) string {
	return fmt.Sprintf("SELECT i, prom_over('%s', v, '%s', %s) AS v FROM %s", n.fn, n.inner, b.spec(n.spec.String()), b.rel(n.in))
}

func (n *overNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	return t.Over(n.fn, n.inner, n.spec, in[0])
}
