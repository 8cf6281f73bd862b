package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Maths maps the functions of one value to the largest number of their scalar parameters.
var Maths = map[string]int{
	"abs": 0, "ceil": 0, "floor": 0, "exp": 0, "sqrt": 0, "ln": 0, "log2": 0, "log10": 0, "sgn": 0, "deg": 0, "rad": 0,
	"sin": 0, "cos": 0, "tan": 0, "asin": 0, "acos": 0, "atan": 0, "sinh": 0, "cosh": 0, "tanh": 0, "asinh": 0, "acosh": 0, "atanh": 0,
	"round": 1, "clamp": 2, "clamp_min": 1, "clamp_max": 1,
	"minute": 0, "hour": 0, "day_of_month": 0, "day_of_week": 0, "day_of_year": 0, "days_in_month": 0, "month": 0, "year": 0,
}

// mathNode applies prom_math to every value of in.
type mathNode struct {
	shaped
	fn     string
	in     Node
	params []Node // scalars
}

// compileMath compiles a function of one value.
func compileMath(b *building, e *parser.Call, at place) (Node, string) {
	args := e.Args
	if len(args) == 0 { // minute() is minute(vector(time()))
		time := &parser.Call{Func: parser.Functions["time"]}
		args = parser.Expressions{&parser.Call{Func: parser.Functions["vector"], Args: parser.Expressions{time}}}
	}
	in, reason := b.compile(args[0], at)
	if reason != "" {
		return nil, reason
	}
	n := &mathNode{fn: e.Func.Name, in: in}
	for _, a := range args[1:] {
		p, reason := b.compile(a, at)
		if reason != "" {
			return nil, reason
		}
		n.params = append(n.params, p)
	}
	if n.fn == "round" && len(n.params) == 0 {
		n.params = []Node{newConst(1, at.grid())}
	}
	return n.complete(b, at)
}

// complete sets the shape of the node.
func (n *mathNode) complete(b *building, at place) (Node, string) {
	in := n.in.Shape()
	n.shape = Shape{Grid: at.grid(), Scalar: in.Scalar, Labels: in.Labels}
	var reason string
	if !in.Scalar {
		if n.shape.Labels, n.shape.Drop, reason = b.withoutNames(in); reason != "" {
			return nil, reason
		}
	}
	if n.shape.notes, reason = n.notes(); reason != "" {
		return nil, reason
	}
	more, reason := independentNotesOf(n.params...)
	n.shape.notes = slices.Concat(n.shape.notes, more)
	return n, reason
}

// notes returns the notes of the input. A clamp whose bounds may cross does not show which inputs
// had a value.
func (n *mathNode) notes() ([]note, string) {
	if n.fn != "clamp" {
		return n.in.Shape().notes, ""
	}
	lo, ok := n.params[0].(*constNode)
	hi, also := n.params[1].(*constNode)
	if ok && also && !(hi.value < lo.value) {
		return n.in.Shape().notes, ""
	}
	return n.in.Shape().independentNotes()
}

// Children implements Node.
func (n *mathNode) Children() []Node { return append([]Node{n.in}, n.params...) }

// String implements Node.
func (n *mathNode) String() string {
	parts := []string{n.fn}
	for _, p := range n.params {
		parts = append(parts, p.String())
	}
	return strings.Join(parts, " ")
}

func (n *mathNode) feeds(child int) []uint32 {
	if child > 0 || n.shape.Scalar {
		return nil
	}
	return all(len(n.shape.Labels))
}

func (n *mathNode) sql(b *builder) string {
	in := b.rel(n.in)
	params := [2]string{"NULL::DOUBLE[]", "NULL::DOUBLE[]"}
	for i, p := range n.params {
		params[i] = b.list(p)
	}
	return fmt.Sprintf("SELECT i, prom_math('%s', v, %s, %s) AS v FROM %s", n.fn, params[0], params[1], in)
}

func (n *mathNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	params := make([][]float64, 0, len(n.params))
	for _, p := range in[1:] {
		params = append(params, p[0].V)
	}
	return vector.Map(n.fn, in[0], params, t.Room), nil
}
