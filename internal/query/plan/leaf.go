package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Leaf reads samples: it is an aggregate over the samples of each series of a selector. It is a
// Node.
type Leaf struct {
	Selector   Selector
	Resolution *Resolution
	// Func is the name of the C aggregate, prom_<f>.
	Func string
	// Spec is the parameter of Func: which samples it takes at which time.
	Spec Spec

	shaped
	exprs []*parser.VectorSelector // the selectors that the leaf stands for: equal ones share it
}

// Spec is the constant parameter of a C aggregate.
type Spec struct {
	// Grid is the times at which the expression is evaluated.
	Grid Grid
	// Offset is the time (ms) from the end of the window to the evaluation time; if negative, the
	// window ends later.
	Offset int64
	// Window is the length (ms) of the window: it holds the samples at (t - Window, t].
	Window int64
	// Params are the function's own parameters, in the order of the query's text.
	Params []Param
}

// Param is a named parameter of a C aggregate.
type Param struct {
	Name  string
	Value float64
}

// String formats the spec for the C aggregate: a grid of the ends of the windows, and shift, which
// is added to them to get the evaluation times.
func (s Spec) String() string { return string(s.Append(make([]byte, 0, 128))) }

// Append appends the text of the spec.
func (s Spec) Append(b []byte) []byte {
	b = Grid{s.Grid.Start - s.Offset, s.Grid.Step, s.Grid.N}.appendText(b)
	b = strconv.AppendInt(append(b, " range="...), s.Window, 10)
	b = strconv.AppendInt(append(b, " shift="...), s.Offset, 10)
	for _, p := range s.Params {
		b = append(append(append(append(b, ' '), p.Name...), '='), formatFloat(p.Value)...)
	}
	return b
}

// compileTimestamp compiles timestamp(): of a selector it returns the time of each sample, of
// another expression that of the step.
func compileTimestamp(b *building, e *parser.Call, at place) (Node, string) {
	sel, ok := e.Args[0].(*parser.VectorSelector)
	if !ok {
		// Of an expression that is no selector, the values are evaluation times.
		in, reason := b.compile(e.Args[0], at)
		if reason != "" {
			return nil, reason
		}
		n := &scaleNode{binary: binary{shaped: shaped{Shape{Grid: at.grid()}}, l: &timeNode{shaped: shaped{scalarShape(at.grid())}}}, op: "and", swap: true}
		if n.r, n.shape.Labels, n.shape.Drop, reason = b.nameless(in); reason != "" {
			return nil, reason
		}
		n.shape.notes = n.r.Shape().notes
		return n, ""
	}
	if sel.Timestamp != nil && sel.OriginalOffset != 0 {
		// upstream evaluates at the time of @ and ignores the offset
		return nil, "timestamp() takes @ and no offset"
	}
	leaf, reason := b.leaf(sel, at, "prom_timestamp", b.options.Lookback)
	if reason != "" {
		return nil, reason
	}
	leaf.shape.Labels = labelsOf(leaf.Resolution)
	if leaf.shape.Labels, leaf.shape.Drop, reason = b.withoutNames(&leaf.shape); reason != "" {
		return nil, reason
	}
	return b.shared(leaf), ""
}

// leaf returns a leaf over a selector at a place. The caller sets its labels.
func (b *building) leaf(e *parser.VectorSelector, at place, fn string, window time.Duration) (*Leaf, string) {
	res := b.resolved[e]
	switch {
	case extended(e):
		return nil, "anchored and smoothed selectors are evaluated by the engine"
	case res == nil:
		return nil, "its series are not known"
	case res.Refused != "":
		return nil, res.Refused
	case at.empty():
		return nil, "it has no steps"
	}
	offset, grid := at.offset(e.Timestamp, e.OriginalOffset), at.grid()
	if ts := e.Timestamp; ts != nil && (grid.N > 1 || grid.Start-offset != *ts-e.OriginalOffset.Milliseconds()) {
		// Upstream deviates from @ in two cases, as far as samples were selected: in a parameter of
		// an aggregation it advances the time of @ with each step, and below a subquery with an
		// offset whose first step is the query's it evaluates at another time.
		return nil, "upstream evaluates it at another time than that of its @"
	}
	return &Leaf{
		Selector: Selector{
			Expr: e, Matchers: e.LabelMatchers,
			MinT: grid.Start - offset - window.Milliseconds() + 1, MaxT: grid.End() - offset,
		},
		Resolution: res, Func: fn,
		Spec:   Spec{Grid: grid, Offset: offset, Window: window.Milliseconds()},
		shaped: shaped{Shape{Grid: grid}},
		exprs:  []*parser.VectorSelector{e},
	}, ""
}

// shared returns the leaf that was compiled before for an equal expression, so that samples are
// read once, or l if there is none. Leaves with annotations are not shared, because annotations
// carry positions in the query.
func (b *building) shared(l *Leaf) *Leaf {
	if len(l.shape.notes) > 0 {
		return l
	}
	switch { // most queries have one leaf, whose text nobody needs
	case b.first == nil:
		b.first = l
		return l
	case len(b.leaves) == 0:
		b.leaves[b.first.key()] = b.first
	}
	key := l.key()
	if same, ok := b.leaves[key]; ok {
		same.exprs = append(same.exprs, l.exprs...)
		return same
	}
	b.leaves[key] = l
	return l
}

// key is equal for equal leaves only.
func (l *Leaf) key() string {
	s := &l.Spec
	b := append(make([]byte, 0, 256), l.Func...)
	for _, n := range []int64{s.Grid.Start, s.Grid.Step, int64(s.Grid.N), s.Offset, s.Window} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	for _, p := range s.Params {
		b = strconv.AppendFloat(append(append(append(b, ' '), p.Name...), '='), p.Value, 'g', -1, 64)
	}
	for _, m := range l.Selector.Matchers {
		b = strconv.AppendQuote(append(b, ' '), m.Name)
		b = strconv.AppendQuote(append(b, m.Type.String()...), m.Value)
	}
	return string(b)
}

func labelsOf(r *Resolution) []labels.Labels {
	out := make([]labels.Labels, len(r.Series))
	for i, s := range r.Series {
		out[i] = s.Labels
	}
	return out
}

// Range returns the time range (ms, inclusive) of the samples that the leaf reads.
func (l *Leaf) Range() (mint, maxt int64) { return l.Selector.MinT, l.Selector.MaxT }

// Children implements Node.
func (l *Leaf) Children() []Node { return nil }

// String implements Node.
func (l *Leaf) String() string {
	return fmt.Sprintf("%s %s %s", strings.TrimPrefix(l.Func, "prom_"), matchers(l.Selector.Matchers), l.Spec)
}

func (l *Leaf) sql(*builder) string { panic("plan: no values of " + l.String()) }

func (l *Leaf) compute([][]vector.Row, *Tools) ([]vector.Row, error) {
	panic("plan: no values of " + l.String())
}

// matchers formats a selector.
func matchers(ms []*labels.Matcher) string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.String()
	}
	return "{" + strings.Join(parts, ",") + "}"
}
