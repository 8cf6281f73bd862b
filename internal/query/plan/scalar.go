package plan

import (
	"fmt"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan/vector"
)

// compileScalarCall compiles the functions that return scalars, and vector(), which returns one
// series.
func compileScalarCall(b *building, e *parser.Call, at place) (Node, string) {
	switch e.Func.Name {
	case "time":
		return &timeNode{shaped: shaped{scalarShape(at.grid())}}, ""
	case "scalar":
		at.unordered = true
		in, reason := b.compile(e.Args[0], at)
		if reason != "" {
			return nil, reason
		}
		n := &wholeNode{unary: unary{shaped: shaped{scalarShape(at.grid())}, in: in}, titled: titled{"scalar"}, op: "scalar"}
		n.shape.notes, reason = in.Shape().independentNotes()
		return n, reason
	case "vector":
		in, reason := b.compile(e.Args[0], at)
		if reason != "" {
			return nil, reason
		}
		n := &labelNode{unary: unary{shaped: shaped{Shape{Grid: at.grid(), Labels: in.Shape().Labels}}, in: in}, titled: titled{"vector of " + operandOf(in)}}
		n.shape.notes, reason = in.Shape().independentNotes()
		return n, reason
	}
	// max_of and min_of are clamp_min and clamp_max: all use math.Max or math.Min.
	l, reason := b.compile(e.Args[0], at)
	if reason != "" {
		return nil, reason
	}
	r, reason := b.compile(e.Args[1], at)
	if reason != "" {
		return nil, reason
	}
	n := &mathNode{fn: "clamp_min", in: l, params: []Node{r}}
	if e.Func.Name == "min_of" {
		n.fn = "clamp_max"
	}
	return n.complete(b, at)
}

// timeNode is the evaluation time in seconds.
type timeNode struct{ shaped }

// Children implements Node.
func (n *timeNode) Children() []Node { return nil }

// String implements Node.
func (n *timeNode) String() string { return "time " + n.shape.Grid.String() }

func (n *timeNode) sql(b *builder) string {
	return fmt.Sprintf("SELECT 0::UINTEGER AS i, prom_time(%s) AS v", b.spec(n.shape.Grid.String()))
}

func (n *timeNode) compute(_ [][]vector.Row, t *Tools) ([]vector.Row, error) {
	return []vector.Row{n.shape.Grid.seconds(t.Room)}, nil
}

// Constant returns the value of a scalar expression whose value is the same at every step; false if
// expr is none.
func Constant(expr parser.Expr) (float64, bool) {
	switch e := Unwrap(expr).(type) {
	case *parser.NumberLiteral:
		return e.Val, true
	case *parser.UnaryExpr:
		v, ok := Constant(e.Expr)
		if e.Op == parser.SUB {
			v = -v
		}
		return v, ok
	case *parser.Call:
		return math.Pi, e.Func.Name == "pi"
	case *parser.BinaryExpr:
		l, ok := Constant(e.LHS)
		if !ok {
			return 0, false
		}
		r, ok := Constant(e.RHS)
		if !ok || e.Op == parser.TRIM_UPPER || e.Op == parser.TRIM_LOWER {
			return 0, false
		}
		v := make([]float64, 1)
		promsql.OperatorOf(Operator(e, false)).Apply(v, []float64{l}, []float64{r})
		return v[0], true
	}
	return 0, false
}

// constNode is a number that holds at every step.
type constNode struct {
	shaped
	value float64
}

func newConst(v float64, g Grid) *constNode {
	return &constNode{shaped: shaped{scalarShape(g)}, value: v}
}

// scalarShape returns the shape of a scalar on a grid.
func scalarShape(g Grid) Shape {
	return Shape{Grid: g, Scalar: true, Labels: []labels.Labels{labels.EmptyLabels()}}
}

// Children implements Node.
func (n *constNode) Children() []Node { return nil }

// String implements Node.
func (n *constNode) String() string { return formatFloat(n.value) }

func (n *constNode) sql(*builder) string {
	return fmt.Sprintf("SELECT 0::UINTEGER AS i, %s AS v", n.list())
}

// list returns the value as a list in SQL.
func (n *constNode) list() string { return "['" + formatFloat(n.value) + "'::DOUBLE]" }

// formatFloat formats a float so that DuckDB and strtod read back the same bits.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (n *constNode) compute(_ [][]vector.Row, t *Tools) ([]vector.Row, error) {
	return []vector.Row{{V: t.Room.Fill(n.shape.Grid.N, n.value)}}, nil
}
