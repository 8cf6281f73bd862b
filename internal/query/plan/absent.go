package plan

import (
	"fmt"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// wholeNode is one value of all series of in at each step, also if there are no series. absent is 1
// where none has a value; scalar is the value of the only one that has one, or NaN.
type wholeNode struct {
	unary
	titled
	op string // absent or scalar: the C aggregate is prom_<op>
}

// compileAbsent compiles absent(), and absent_over_time() as absent(last_over_time()): that
// function has a value wherever there is a sample, and keeps metric names.
func compileAbsent(b *building, e *parser.Call, at place) (in Node, reason string) {
	at.unordered = true
	sel, _ := e.Args[0].(*parser.VectorSelector)
	over := e.Func.Name == "absent_over_time"
	if over {
		if m, ok := e.Args[0].(*parser.MatrixSelector); ok {
			sel, _ = m.VectorSelector.(*parser.VectorSelector)
		}
		window := *e
		window.Func = parser.Functions["last_over_time"]
		in, reason = compileRange(b, &window, at)
	} else {
		in, reason = b.compile(e.Args[0], at)
	}
	if reason != "" {
		return nil, reason
	}
	n := &wholeNode{unary: unary{shaped: shaped{Shape{Grid: at.grid(), Labels: []labels.Labels{AbsentLabels(sel)}}}, in: in}, titled: titled{e.Func.Name}, op: "absent"}
	if drop := dropAll(n.shape.Labels); over && b.options.DelayedNames {
		n.shape.Drop = drop
	} else if over && drop != nil {
		return nil, "a matcher names a label that belongs to the metric name"
	}
	n.shape.notes, reason = in.Shape().independentNotes()
	return n, reason
}

// AbsentLabels returns the labels of the series that absent() returns: those that equality matchers
// of the selector fix. sel is nil if the argument is no selector; then there are no labels.
// Source: createLabelsForAbsentFunction in upstream's promql/functions.go.
func AbsentLabels(sel *parser.VectorSelector) labels.Labels {
	if sel == nil {
		return labels.EmptyLabels()
	}
	lb := labels.NewBuilder(labels.EmptyLabels())
	fixed := map[string]bool{}
	for _, m := range sel.LabelMatchers {
		switch {
		case m.Name == model.MetricNameLabel:
		case m.Type == labels.MatchEqual && !fixed[m.Name]:
			lb.Set(m.Name, m.Value)
			fixed[m.Name] = true
		default:
			lb.Del(m.Name)
		}
	}
	return lb.Labels()
}

func (n *wholeNode) sql(b *builder) string {
	steps := b.spec("n=" + strconv.Itoa(n.shape.Grid.N))
	return fmt.Sprintf("SELECT 0::UINTEGER AS i, prom_%s(v, %s) AS v FROM %s", n.op, steps, b.rel(n.in))
}

func (n *wholeNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	v, present, err := vector.Whole(n.op, in[0], n.shape.Grid.N, t.Memory)
	if !present {
		return nil, err
	}
	return []vector.Row{{V: v}}, nil
}
