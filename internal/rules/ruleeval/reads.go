package ruleeval

import (
	"cmp"
	"maps"
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

// part is what is evaluated together: one rule, or rules whose results depend on each other's
// order.
type part struct {
	rules []*Rule // by group, then in its order
	// whole means that the part must be evaluated from the beginning, because what it writes may
	// depend on everything that was written before.
	whole bool
}

// graph says which rules read what other rules write.
type graph struct {
	rules []*Rule
	place map[*Rule]int
	reads []map[int]time.Duration // of each rule: the rules that it reads, and how far back
}

// parts returns the parts in the order of what they read.
func (g *graph) parts() []*part {
	whole := make([]bool, len(g.rules))
	for _, c := range components(g.reads) {
		_, self := g.reads[c[0]][c[0]]
		for _, i := range c {
			whole[i] = self || len(c) > 1
		}
	}
	edges := make([]map[int]time.Duration, len(g.rules))
	for i, reads := range g.reads {
		edges[i] = map[int]time.Duration{}
		for j, reach := range reads {
			edges[i][j] = reach
		}
	}
	for i, reads := range g.reads {
		for j, reach := range reads {
			whole[i] = whole[i] || reach == unbounded
			whole[j] = whole[j] || g.rules[j].record == "" // for and keep_firing_for reach back
			// When the reader is evaluated at a time, a rule that it reads may not yet have written
			// all samples up to there. They are evaluated time after time then.
			reader, r := g.rules[i], g.rules[j]
			later := r.group == reader.group && r.index > reader.index
			offset, readers := r.group.QueryOffset(), reader.group.QueryOffset()
			if later || offset > readers || !reader.ranged && offset > 0 {
				edges[j][i] = 0
			}
		}
		for j := range i {
			if sameSeries(g.rules[i], g.rules[j]) {
				edges[i][j], edges[j][i] = 0, 0
			}
		}
	}
	var out []*part
	all := components(edges)
	for at := len(all) - 1; at >= 0; at-- { // the readers first
		needed := slices.ContainsFunc(all[at], func(i int) bool { return whole[i] })
		p := &part{whole: needed}
		for _, i := range all[at] {
			p.rules = append(p.rules, g.rules[i])
			for j := range g.reads[i] {
				whole[j] = whole[j] || needed
			}
		}
		slices.SortFunc(p.rules, func(a, b *Rule) int {
			return cmp.Or(cmp.Compare(a.group.place, b.group.place), cmp.Compare(a.index, b.index))
		})
		out = append(out, p)
	}
	slices.Reverse(out)
	return out
}

// sameSeries reports whether two rules may write the same series, of which the later sample of a
// time would be refused.
func sameSeries(a, b *Rule) bool {
	if a.record == "" || a.record != b.record {
		return false
	}
	same := true
	a.labels.Range(func(l labels.Label) { same = same && (!b.labels.Has(l.Name) || b.labels.Get(l.Name) == l.Value) })
	return same
}

// components returns the strongly connected components of a graph, each after those to which its
// edges lead (Kosaraju's algorithm).
func components(edges []map[int]time.Duration) (out [][]int) {
	from, to := make([][]int, len(edges)), make([][]int, len(edges))
	for i := range edges {
		for _, j := range slices.Sorted(maps.Keys(edges[i])) {
			from[i], to[j] = append(from[i], j), append(to[j], i)
		}
	}
	seen := make([]bool, len(edges))
	// visit appends what is reached from i, each after those that are reached from it.
	var visit func(along [][]int, i int, reached *[]int)
	visit = func(along [][]int, i int, reached *[]int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, j := range along[i] {
			visit(along, j, reached)
		}
		*reached = append(*reached, i)
	}
	var order []int
	for i := range edges {
		visit(to, i, &order)
	}
	clear(seen)
	for _, i := range slices.Backward(order) {
		var c []int
		if visit(from, i, &c); c != nil {
			out = append(out, c)
		}
	}
	return out
}
