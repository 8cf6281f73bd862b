package plantest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Chance generates expressions and series with few names and values, so that label sets often
// match.
type Chance struct{ *rand.Rand }

// NewChance returns the generator of a seed.
func NewChance(seed int) Chance { return Chance{rand.New(rand.NewPCG(uint64(seed), 4))} }

func (c Chance) one(of ...string) string { return of[c.IntN(len(of))] }

// names returns some label names.
func (c Chance) names() string {
	var out []string
	for _, n := range []string{"x", "y", "__name__", "le"} {
		if c.IntN(3) == 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// Series returns series that have distinct values at one or both of two steps.
func (c Chance) Series() Memory {
	var out Memory
	seen := map[uint64]bool{}
	for i := range 1 + c.IntN(8) {
		lb := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", c.one("a", "b", "c_bucket"))
		for _, n := range []string{"x", "y"} {
			lb.Set(n, c.one("", "1", "2"))
		}
		lb.Set("le", c.one("", "", "1", "+Inf")).Set("__type__", c.one("", "", "", "gauge"))
		l := lb.Labels()
		if seen[l.Hash()] {
			continue
		}
		seen[l.Hash()] = true
		s := promql.Series{Metric: l}
		for k, at := range []int64{600_000, 660_000} {
			if c.IntN(4) > k {
				s.Floats = append(s.Floats, promql.FPoint{T: at, F: float64(c.IntN(4)) + float64(i)/64})
			}
		}
		if len(s.Floats) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Vector returns an expression of at most the given depth.
func (c Chance) Vector(depth int) string {
	if depth == 0 {
		return c.one(`a`, `b`, `c_bucket`, `{__name__=~"a|b"}`, `{x="1"}`, `vector(2)`, `last_over_time(a[1m])`, `max_over_time(b[1m])`, `-a`)
	}
	v := func() string { return c.Vector(c.IntN(depth)) }
	switch c.IntN(11) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", v(), c.one("+", "/", "==", "> bool", "<=")+c.matching(true), v())
	case 2, 3:
		return fmt.Sprintf("(%s %s %s)", v(), c.one("and", "or", "unless")+c.matching(false), v())
	case 4:
		return fmt.Sprintf("(%s %s %s)", v(), c.one("+", "==", "!= bool"), c.one("1", "scalar("+v()+")"))
	case 5:
		return fmt.Sprintf(`label_replace(%s, %q, %q, %q, "(.*)")`, v(), c.one("x", "z", "__name__", "le"), c.one("$1", "q", "1"), c.one("y", "x", "__name__", "no"))
	case 6:
		return fmt.Sprintf(`label_join(%s, %q, "", %q)`, v(), c.one("x", "z", "__name__"), c.one("y", "x", "__name__"))
	case 7:
		return fmt.Sprintf("%s %s (%s)", c.one("sum", "count", "max"), c.one("by", "without")+" ("+c.names()+")", v())
	case 8: // distinct values: upstream does not define which of equal values it selects
		return fmt.Sprintf("%s %s (%s, %s)", c.one("topk", "bottomk", "limit_ratio"), c.one("by", "without")+" ("+c.names()+")", c.one("1", "0.5", "-0.5", "2"),
			c.one("a", "-a", `{__name__=~"a|b"}`, "max_over_time(b[1m])", "(a > 1.5)"))
	case 9:
		return c.one("absent(", "timestamp(", "-(", "histogram_quantile(0.5, ", "abs(") + v() + ")"
	}
	return fmt.Sprintf("%s(%s[2m:30s])", c.one("last_over_time", "sum_over_time", "rate", "absent_over_time"), "("+v()+")")
}

// matching returns the matching of an operator; grouped may have group_left and group_right.
func (c Chance) matching(grouped bool) string {
	names := c.names()
	kind := c.one("", " on", " ignoring")
	if kind == "" {
		return ""
	}
	out := kind + " (" + names + ")"
	if !grouped || c.IntN(2) == 0 {
		return out
	}
	var include []string
	for _, n := range []string{"y", "z", "__name__"} {
		if c.IntN(3) == 0 && !(kind == " on" && strings.Contains(names, n)) {
			include = append(include, n)
		}
	}
	return out + c.one(" group_left", " group_right") + " (" + strings.Join(include, ", ") + ")"
}
