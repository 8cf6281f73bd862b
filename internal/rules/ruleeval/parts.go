package ruleeval

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// part is what is evaluated together: one rule, or rules whose results depend on each other's
// order.
type part struct {
	rules []*Rule // by group, then in its order
	// whole means that the part must be evaluated from the beginning, because what it writes may
	// depend on everything that was written before.
	whole bool
}

// overlap is how long before an evaluation another rule of the part may have written a series with
// a later time, because of which a sample of the evaluation is refused.
func (p *part) overlap() time.Duration {
	var offset, interval time.Duration
	for i, a := range p.rules {
		if slices.ContainsFunc(p.rules[:i], func(b *Rule) bool { return sameSeries(a, b) }) {
			for _, r := range p.rules {
				offset, interval = max(offset, r.group.QueryOffset()), max(interval, r.Interval())
			}
		}
	}
	return 2 * (offset + interval)
}

// graph says which rules read what other rules write.
type graph struct {
	rules []*Rule
	place map[*Rule]int
	reads []map[int]time.Duration // of each rule: the rules that it reads, and how far back
}

// newGraph returns the rules that targets read, directly or through others, and themselves, if
// these are producers.
func newGraph(targets, producers []*Rule) *graph {
	g := &graph{place: map[*Rule]int{}}
	add := func(r *Rule) int {
		i, ok := g.place[r]
		if !ok {
			i = len(g.rules)
			g.place[r] = i
			g.rules, g.reads = append(g.rules, r), append(g.reads, map[int]time.Duration{})
		}
		return i
	}
	for _, r := range targets {
		add(r)
	}
	for i := 0; i < len(g.rules); i++ { // g.rules grows
		for _, x := range g.rules[i].reads {
			for _, p := range producers {
				if p.writes(x.matchers) {
					at := add(p)
					g.reads[i][at] = max(g.reads[i][at], x.reach)
				}
			}
		}
	}
	return g
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
			if together(g.rules[i], g.rules[j]) {
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

// together reports whether a rule and one that it reads must be evaluated time after time: when the
// reader is evaluated at a time, the other one has not yet written all samples up to there.
func together(reader, r *Rule) bool {
	later := r.group == reader.group && r.index > reader.index
	offset, readers := r.group.QueryOffset(), reader.group.QueryOffset()
	return later || offset > readers || !reader.ranged && offset > 0
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
// edges lead (Tarjan's algorithm).
func components(edges []map[int]time.Duration) (out [][]int) {
	const unseen = 0
	number, low, on := make([]int, len(edges)), make([]int, len(edges)), make([]bool, len(edges))
	var stack []int
	next := unseen + 1
	var visit func(i int)
	visit = func(i int) {
		number[i], low[i], on[i] = next, next, true
		next++
		stack = append(stack, i)
		targets := make([]int, 0, len(edges[i]))
		for j := range edges[i] {
			targets = append(targets, j)
		}
		slices.Sort(targets)
		for _, j := range targets {
			switch {
			case number[j] == unseen:
				visit(j)
				low[i] = min(low[i], low[j])
			case on[j]:
				low[i] = min(low[i], number[j])
			}
		}
		if low[i] != number[i] {
			return
		}
		at := slices.Index(stack, i)
		c := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, j := range c {
			on[j] = false
		}
		out = append(out, c)
	}
	for i := range edges {
		if number[i] == unseen {
			visit(i)
		}
	}
	return out
}
