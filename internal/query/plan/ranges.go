package plan

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/util/annotations"
)

// Range is a function of the samples in a window.
type Range struct {
	// Params are the names of the function's scalar arguments in the spec, in order.
	Params []string
	// KeepsName: the result is a sample of the series and keeps the metric name.
	KeepsName bool
}

// Ranges are the functions of ranges that have a C aggregate. absent_over_time is compiled over
// last_over_time.
var Ranges = map[string]Range{
	"rate": {}, "increase": {}, "delta": {}, "irate": {}, "idelta": {},
	"deriv": {}, "predict_linear": {Params: []string{"dur"}},
	"changes": {}, "resets": {},
	"avg_over_time": {}, "min_over_time": {}, "max_over_time": {}, "sum_over_time": {}, "count_over_time": {}, "present_over_time": {},
	"absent_over_time": {},
	"last_over_time":   {KeepsName: true}, "first_over_time": {KeepsName: true},
	"stddev_over_time": {}, "stdvar_over_time": {}, "mad_over_time": {}, "quantile_over_time": {Params: []string{"phi"}},
	"ts_of_min_over_time": {}, "ts_of_max_over_time": {}, "ts_of_first_over_time": {}, "ts_of_last_over_time": {},
	"double_exponential_smoothing": {Params: []string{"sf", "tf"}},
}

// compileRange compiles a function of a range selector.
func compileRange(b *building, e *parser.Call, at place) (Node, string) {
	name := e.Func.Name
	f := Ranges[name]
	params, window, reason := RangeArgs(e)
	if reason != "" {
		return nil, reason
	}
	m, ok := window.(*parser.MatrixSelector)
	if !ok {
		// Source: evaluator.evalSubquery in upstream's promql/engine.go.
		s, ok := window.(*parser.SubqueryExpr)
		if !ok {
			return nil, "a " + parser.DocumentedType(window.Type()) + " is evaluated by the engine"
		}
		within := at.within(s, b.options.DefaultSubqueryStep)
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
		offset := s.OriginalOffset.Milliseconds()
		if s.Timestamp != nil {
			offset += at.start - *s.Timestamp
		}
		n.spec = Spec{Grid: at.grid(), Offset: offset, Window: s.Range.Milliseconds(), Params: params}
		return n.complete(b, e)
	}
	sel := m.VectorSelector.(*parser.VectorSelector)
	leaf, reason := b.leaf(sel, at, "prom_"+name, m.Range)
	switch {
	case reason != "":
		return nil, reason
	case leaf.Resolution.Starts && b.options.needsStarts(name):
		return nil, name + "() reads start timestamps"
	}
	leaf.Spec.Params, leaf.Selector.Range = params, leaf.Spec.Window
	leaf.shape.Labels = labelsOf(leaf.Resolution)
	leaf.shape.notes = rangeNotes(e, params, leaf.Resolution.Series, e.Args[0].PositionRange())
	for i := range leaf.shape.notes {
		leaf.shape.notes[i].leaf = leaf
	}
	if f.KeepsName {
		return b.shared(leaf), ""
	}
	if leaf.shape.Labels, leaf.shape.Drop, reason = b.withoutNames(&leaf.shape); reason != "" {
		return nil, reason
	}
	return b.shared(leaf), ""
}

// RangeArgs returns the parameters of a call of a function of ranges, which must be constant, and
// its range.
func RangeArgs(e *parser.Call) (params []Param, window parser.Expr, reason string) {
	names := Ranges[e.Func.Name].Params
	for _, a := range e.Args {
		if a.Type() == parser.ValueTypeMatrix {
			window = Unwrap(a)
			continue
		}
		v, ok := Constant(a)
		if !ok {
			return nil, nil, "a parameter of " + e.Func.Name + "() is not constant"
		}
		params = append(params, Param{names[len(params)], v})
	}
	if e.Func.Name == "double_exponential_smoothing" {
		for _, p := range params {
			if p.Value <= 0 || p.Value >= 1 { // NaN passes, as in upstream's check
				return nil, nil, "upstream rejects its parameters"
			}
		}
	}
	return params, window, ""
}

// Unwrap removes parentheses and step invariance, which do not change the value.
func Unwrap(e parser.Expr) parser.Expr {
	for {
		switch x := e.(type) {
		case *parser.ParenExpr:
			e = x.Expr
		case *parser.StepInvariantExpr:
			e = x.Expr
		default:
			return e
		}
	}
}

// rangeNotes returns the annotations of a function of ranges over float series. pos is the position
// in infos about counters.
func rangeNotes(e *parser.Call, params []Param, series []Series, pos posrange.PositionRange) []note {
	switch e.Func.Name {
	case "rate", "increase":
		return nonCounters(series, pos)
	case "quantile_over_time":
		if phi := params[0].Value; badQuantile(phi) {
			return []note{{err: annotations.NewInvalidQuantileWarning(phi, e.Args[0].PositionRange()), on: all(len(series))}}
		}
	}
	return nil
}

// badQuantile reports whether phi is outside [0, 1].
func badQuantile(phi float64) bool { return math.IsNaN(phi) || phi < 0 || phi > 1 }
