package plan

import (
	"fmt"
	"slices"

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

// complete sets the shape of the node.
func (n *overNode) complete(b *building, e *parser.Call) (Node, string) {
	from := n.in.Shape()
	n.shape.Labels, n.shape.Drop = from.Labels, from.Drop
	var reason string
	if !Ranges[n.fn].KeepsName {
		if n.shape.Labels, n.shape.Drop, reason = b.withoutNames(from); reason != "" {
			return nil, reason
		}
	}
	notes := from.notes
	if !n.seesAll() {
		if notes, reason = from.independentNotes(); reason != "" {
			return nil, reason
		}
	}
	series := make([]Series, len(from.Labels))
	for i, l := range from.Labels {
		series[i].Labels = l
	}
	// Upstream's infos about counters have no position here.
	n.shape.notes = slices.Concat(notes, rangeNotes(e, n.spec.Params, series, posrange.PositionRange{}))
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
