package fuzzpromql

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// class is how two answers may differ. The operators of the query determine it.
//
//	exact     upstream's answer does not depend on the order in which the storage returns series:
//	          every bit must be equal.
//	numeric   min and max keep the first of 0 and −0: numbers must be equal.
//	ordered   the answer depends on the order of series: sum, avg, stddev and stdvar round at each
//	          step, and topk, bottomk and limitk take the first of equal values. Numbers must be
//	          equal to relative 1e-12. A query that subtracts, compares or rounds such a number can
//	          amplify the last bit without bound. So a larger difference is compared with upstream
//	          itself: the query runs again over series in other orders and with noise in the last
//	          bits of samples that are not integers (integers add up exactly in any order). Promlake
//	          may differ by as much as upstream differs from itself, times slack. If upstream even
//	          disagrees with itself about which points exist, the query counts as undecided.
//
// Of the notes of a binary operator, upstream returns that of the last series at each step. So a
// query of any class whose notes alone differ counts as undecided if upstream, over series in other
// orders, disagrees with itself about them.
type class int

const (
	exact class = iota
	numeric
	ordered
)

const (
	tolerance = 1e-12
	slack     = 64
	noises    = 8  // repetitions of the query on upstream, to whose values an answer is compared
	orders    = 40 // repetitions that show whether upstream disagrees with itself: often of two minds only
)

func classOf(e parser.Expr) class {
	c := exact
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			switch a.Op {
			case parser.SUM, parser.AVG, parser.STDDEV, parser.STDVAR, parser.TOPK, parser.BOTTOMK, parser.LIMITK:
				c = max(c, ordered)
			case parser.MIN, parser.MAX, parser.QUANTILE:
				c = max(c, numeric)
			}
		}
		return nil
	})
	return c
}

// verdict is the result of a comparison.
type verdict struct {
	difference string // empty: none
	undecided  bool
	limited    bool // memory was short
}

// compare compares got with want. again queries upstream with noise.
func compare(c class, got, want outcome, again func(noise int) outcome) verdict {
	if !slices.Equal(got.notes, want.notes) {
		own := got.notes
		got.notes = want.notes
		v := compare(c, got, want, again)
		if v.difference != "" {
			return v
		}
		for i := range orders {
			if !slices.Equal(again(i).notes, want.notes) {
				return verdict{undecided: true}
			}
		}
		return verdict{difference: fmt.Sprintf("notes %q, want %q", own, want.notes)}
	}
	d := got.differs(want)
	if d == "" {
		if d = values(got, want, c, nil); d == "" {
			return verdict{}
		}
	}
	if c != ordered {
		return verdict{difference: d}
	}
	var noisy []outcome
	for i := range orders {
		o := again(i)
		if o.differs(want) != "" {
			return verdict{undecided: true}
		}
		if i < noises {
			noisy = append(noisy, o)
		}
	}
	if got.differs(want) != "" {
		return verdict{difference: d}
	}
	return verdict{difference: values(got, want, c, noisy)}
}

// values compares the floats of outcomes of one shape.
func values(got, want outcome, c class, noisy []outcome) string {
	for k, ps := range want.series {
		for i, p := range ps {
			if p.h != "" {
				continue
			}
			spread := 0.0
			for _, o := range noisy {
				spread = max(spread, distance(o.series[k][i].f, p.f))
			}
			if own := got.series[k][i].f; !near(own, p.f, c, spread) {
				return fmt.Sprintf("series %s at %d: %v (%016x), want %v (%016x), upstream's own spread %g",
					k, p.t, own, math.Float64bits(own), p.f, math.Float64bits(p.f), spread)
			}
		}
	}
	if !slices.EqualFunc(got.sorted, want.sorted, func(a, b float64) bool { return near(a, b, c, 0) }) && noisy == nil {
		return fmt.Sprintf("sorted values %v, want %v", got.sorted, want.sorted)
	}
	return ""
}

// near reports whether two floats are as close as the class requires.
func near(got, want float64, c class, spread float64) bool {
	switch {
	case identical(got, want):
		return true
	case c == exact:
		return false
	case got == want:
		return true
	case c == numeric:
		return false
	}
	d := distance(got, want)
	return !math.IsInf(d, 1) && d <= tolerance*math.Max(math.Abs(got), math.Abs(want)) || d <= slack*spread
}

// distance returns an infinite distance unless both are finite or identical.
func distance(a, b float64) float64 {
	if identical(a, b) {
		return 0
	}
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}
