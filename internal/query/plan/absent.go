package plan

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// absentNode is one series with the value 1 at each step at which no series of in has a value.
type absentNode struct {
	unary
	titled
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
	n := &absentNode{unary: unary{shaped: shaped{Shape{Grid: at.grid(), Labels: []labels.Labels{AbsentLabels(sel)}}}, in: in}, titled: titled{e.Func.Name}}
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

func (n *absentNode) sql(b *builder) string {
	return fmt.Sprintf("SELECT 0::UINTEGER AS i, prom_absent(v, %s) AS v FROM %s", steps(b, n.shape.Grid), b.rel(n.in))
}

func (n *absentNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	v, present, err := vector.Whole("absent", in[0], n.shape.Grid.N, t.Memory)
	if !present {
		return nil, err
	}
	return []vector.Row{{V: v}}, nil
}
