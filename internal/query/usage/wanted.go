package usage

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan"
)

// kind is a kind of things that queries ask for.
type kind int

const (
	metrics    kind = iota // metric names
	patterns               // regular expressions of metric names
	labelNames             // labels without the metric name
	kinds
)

// Wants are the things that a query asks for, each once, sorted. Nobody changes them.
type Wants [kinds][]string

func (w *Wants) add(k kind, name string) {
	if k == labelNames && name == model.MetricNameLabel {
		return
	}
	w[k] = append(w[k], name)
}

// labelArguments are the functions with names of labels among their arguments, and the index of the
// first of them.
var labelArguments = map[string]int{"label_replace": 3, "label_join": 3, "sort_by_label": 1, "sort_by_label_desc": 1}

// ofBuckets are the functions that read the label le of classic histograms.
var ofBuckets = map[string]bool{"histogram_quantile": true, "histogram_quantiles": true, "histogram_fraction": true}

// Wanted returns what an expression asks for: the metric names that its selectors name, patterns of
// names, and the labels that it names. A selector without a condition on the name, or with one that
// nearly every name meets (!=, !~, and =~ that matches the empty name), asks for no metric.
// `without` and `ignoring` ask for no label.
func Wanted(expr parser.Expr) *Wants {
	w := &Wants{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				w.add(labelNames, m.Name)
				if m.Name == model.MetricNameLabel {
					w.metrics(m)
				}
			}
		case *parser.AggregateExpr:
			if !n.Without {
				w.labels(n.Grouping)
			}
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil {
				if m.On {
					w.labels(m.MatchingLabels)
				}
				w.labels(m.Include)
			}
		case *parser.Call:
			w.call(n)
		}
		return nil
	})
	for k, names := range w {
		slices.Sort(names)
		w[k] = slices.Clip(slices.Compact(names))
	}
	return w
}

// metrics adds what a condition on the metric name asks for.
func (w *Wants) metrics(m *labels.Matcher) {
	switch {
	case m.Matches(""):
	case m.Type == labels.MatchEqual:
		w.add(metrics, m.Value)
	case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0:
		for _, name := range m.SetMatches() {
			w.add(metrics, name)
		}
	case m.Type == labels.MatchRegexp && m.Value != ".+":
		w.add(patterns, m.Value)
	}
}

func (w *Wants) labels(names []string) {
	for _, name := range names {
		w.add(labelNames, name)
	}
}

// call adds the labels that a function reads.
func (w *Wants) call(c *parser.Call) {
	if ofBuckets[c.Func.Name] {
		w.add(labelNames, model.BucketLabel)
	}
	first, ok := labelArguments[c.Func.Name]
	if !ok {
		return
	}
	last := len(c.Args)
	if c.Func.Name == "label_replace" {
		last = min(last, first+1)
	}
	for _, arg := range c.Args[min(first, last):last] {
		if s, ok := plan.Unwrap(arg).(*parser.StringLiteral); ok {
			w.add(labelNames, s.Val)
		}
	}
}
