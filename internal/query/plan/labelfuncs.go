package plan

import (
	"fmt"
	"strings"

	"github.com/grafana/regexp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// labelNode is in with changed labels: a scalar, for example, as one series without labels.
type labelNode struct {
	unary
	titled
}

// compileLabelReplace compiles label_replace(v, dst, replacement, src, regex).
// Source: evalLabelReplace in upstream's promql/functions.go.
func compileLabelReplace(b *building, e *parser.Call, at place) (Node, string) {
	dst, repl, src := text(e.Args[1]), text(e.Args[2]), text(e.Args[3])
	re, err := regexp.Compile("^(?s:" + text(e.Args[4]) + ")$")
	if err != nil {
		return nil, "upstream rejects the regular expression"
	}
	return relabel(b, e, at, dst, func(l labels.Labels) (string, bool) {
		v := l.Get(src)
		found := re.FindStringSubmatchIndex(v)
		if found == nil {
			return "", false
		}
		return string(re.ExpandString(nil, repl, v, found)), true
	})
}

// compileLabelJoin compiles label_join(v, dst, separator, src...).
// Source: evalLabelJoin in upstream's promql/functions.go.
func compileLabelJoin(b *building, e *parser.Call, at place) (Node, string) {
	dst, sep := text(e.Args[1]), text(e.Args[2])
	src := make([]string, len(e.Args)-3)
	for i, a := range e.Args[3:] {
		if src[i] = text(a); !model.UTF8Validation.IsValidLabelName(src[i]) {
			return nil, "upstream rejects a label name"
		}
	}
	values := make([]string, len(src))
	return relabel(b, e, at, dst, func(l labels.Labels) (string, bool) {
		for i, s := range src {
			values[i] = l.Get(s)
		}
		return strings.Join(values, sep), true
	})
}

// text returns the value of a string literal.
func text(e parser.Expr) string {
	s, _ := Unwrap(e).(*parser.StringLiteral)
	return s.Val
}

// relabel sets the label dst of each series to the result of value, unless that returns false.
func relabel(b *building, e *parser.Call, at place, dst string, value func(labels.Labels) (string, bool)) (Node, string) {
	switch {
	case !model.UTF8Validation.IsValidLabelName(dst):
		return nil, "upstream rejects a label name"
	case dst == model.MetricTypeLabel || dst == model.MetricUnitLabel:
		// Whether such a label is dropped at the end of the query depends on the operations below.
		return nil, dst + " belongs to the metric name"
	}
	in, reason := b.compile(e.Args[0], at)
	if reason != "" {
		return nil, reason
	}
	from := in.Shape()
	args := make([]string, len(e.Args)-1)
	for i, a := range e.Args[1:] {
		args[i] = a.String()
	}
	n := &labelNode{unary: unary{shaped: shaped{Shape{Grid: at.grid(), Labels: make([]labels.Labels, len(from.Labels)), notes: from.notes}}, in: in}, titled: titled{e.Func.Name + "(" + strings.Join(args, ", ") + ")"}}
	drop := make([]bool, len(from.Labels))
	lb := labels.NewBuilder(labels.EmptyLabels())
	for i, l := range from.Labels {
		n.shape.Labels[i], drop[i] = l, from.drops(i)
		if v, ok := value(l); ok {
			lb.Reset(l)
			n.shape.Labels[i] = lb.Set(dst, v).Labels()
			drop[i] = drop[i] && dst != model.MetricNameLabel
		}
	}
	if !distinct(n.shape.Labels) {
		return nil, duplicates
	}
	if from.Drop != nil {
		n.shape.Drop = drop
	}
	return n, ""
}

func (n *labelNode) feeds(int) []uint32 { return all(len(n.shape.Labels)) }

func (n *labelNode) sql(b *builder) string { return fmt.Sprintf("SELECT i, v FROM %s", b.rel(n.in)) }

func (n *labelNode) compute(in [][]vector.Row, _ *Tools) ([]vector.Row, error) {
	return in[0], nil
}
