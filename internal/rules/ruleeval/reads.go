package ruleeval

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// unbounded is the reach of an expression that may read any time.
const unbounded = time.Duration(math.MaxInt64)

// read is a selector of an expression.
type read struct {
	matchers []*labels.Matcher
	reach    time.Duration // how far before the evaluation it reads
}

// analyze returns the selectors of an expression. ranged reports whether a range query has the
// result of an instant query at each of its steps: the result at a time depends on no other step
// and on no later sample.
func analyze(expr parser.Expr, lookback time.Duration) (reads []read, ranged bool) {
	ranged = true
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && c.Func.Name == "info" {
			ranged = false // it looks for labels in the whole range
			reads = append(reads, read{reach: unbounded})
		}
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		r := read{matchers: s.LabelMatchers, reach: lookback}
		bounded := true
		shift := func(original time.Duration, computed *parser.DurationExpr, at *int64, bound parser.ItemType) {
			// A computed duration may name the step of a range query.
			bounded = bounded && computed == nil && at == nil && bound == 0
			if original < 0 {
				ranged = false
			}
			r.reach += max(original, 0)
		}
		shift(s.OriginalOffset, s.OriginalOffsetExpr, s.Timestamp, s.StartOrEnd)
		if s.Smoothed || s.Anchored {
			ranged = false
		}
		for _, above := range path {
			switch x := above.(type) {
			case *parser.MatrixSelector:
				bounded = bounded && x.RangeExpr == nil
				r.reach += x.Range
			case *parser.SubqueryExpr:
				shift(x.OriginalOffset, x.OriginalOffsetExpr, x.Timestamp, x.StartOrEnd)
				bounded = bounded && x.RangeExpr == nil && x.StepExpr == nil
				r.reach += x.Range
			}
		}
		if !bounded {
			r.reach, ranged = unbounded, false
		}
		reads = append(reads, r)
		return nil
	})
	return reads, ranged
}

// The metrics that alerting rules write.
const (
	AlertsMetric   = "ALERTS"
	ForStateMetric = "ALERTS_FOR_STATE"
)

// writes reports whether a selector may match series that a rule writes.
func (r *Rule) writes(ms []*labels.Matcher) bool {
	names := []string{r.record}
	if r.record == "" {
		names = []string{AlertsMetric, ForStateMetric}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(ms, func(m *labels.Matcher) bool {
			switch {
			case m.Name == model.MetricNameLabel:
				return !m.Matches(name)
			case r.record == "" && m.Name == labels.AlertName:
				return !m.Matches(r.name)
			case r.record == "" || !r.labels.Has(m.Name):
				return false // the labels of the result, and templates of alerts, are not known
			}
			return !m.Matches(r.labels.Get(m.Name))
		})
	})
}

// wrote reports whether a series may be one that the rule writes.
func (r *Rule) wrote(ls labels.Labels) bool {
	if r.record == "" {
		name := ls.Get(model.MetricNameLabel)
		return (name == AlertsMetric || name == ForStateMetric) && ls.Get(labels.AlertName) == r.name
	}
	if ls.Get(model.MetricNameLabel) != r.record {
		return false
	}
	same := true
	r.labels.Range(func(l labels.Label) { same = same && ls.Get(l.Name) == l.Value })
	return same
}
