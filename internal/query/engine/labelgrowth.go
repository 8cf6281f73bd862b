package engine

import (
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// growing computes a request.Growth.
type growing struct{ request.Growth }

func plus(a, b request.Size) request.Size {
	return request.Size{PerValue: a.PerValue + b.PerValue, Fixed: a.Fixed + b.Fixed}
}

func most(a, b request.Size) request.Size {
	return request.Size{PerValue: max(a.PerValue, b.PerValue), Fixed: max(a.Fixed, b.Fixed)}
}

// labelSizes are the values of the labels that operations have set on the way to a result. Others
// are as stored.
type labelSizes map[string]request.Size

func (l labelSizes) of(name string) request.Size {
	if s, ok := l[name]; ok {
		return s
	}
	return request.Size{PerValue: 1}
}

func (l labelSizes) with(name string, s request.Size) labelSizes {
	out := maps.Clone(l)
	if out == nil {
		out = labelSizes{}
	}
	out[name] = s
	return out
}

// growthOf bounds the labels of an expression's results. Values are doubled by label_join(v, "a",
// "", "a", "a"), so that no limit on the expression's length limits them.
func growthOf(e parser.Expr) request.Growth {
	g := growing{request.Growth{Series: 1}}
	g.walk(e)
	return g.Growth
}

func (g *growing) walk(n parser.Expr) labelSizes {
	out := g.result(n)
	var all request.Size
	for _, s := range out {
		all = plus(all, s)
	}
	g.Added = most(g.Added, all)
	return out
}

func (g *growing) result(n parser.Expr) labelSizes {
	switch e := plan.Unwrap(n).(type) {
	case *parser.UnaryExpr:
		return g.walk(e.Expr)
	case *parser.SubqueryExpr:
		return g.walk(e.Expr)
	case *parser.AggregateExpr:
		in := g.walk(e.Expr)
		if e.Op != parser.COUNT_VALUES {
			return in
		}
		g.Series = 0 // as many as there are samples
		return in.with(stringOf(e.Param), request.Size{Fixed: longestFloat})
	case *parser.BinaryExpr:
		l, r := g.walk(e.LHS), g.walk(e.RHS)
		switch m := e.VectorMatching; {
		case e.LHS.Type() == parser.ValueTypeScalar:
			return r
		case m == nil, e.Op == parser.LAND, e.Op == parser.LUNLESS:
			return l
		case e.Op == parser.LOR:
			out := maps.Clone(l)
			for name, s := range r {
				out = out.with(name, most(s, l.of(name)))
			}
			return out
		case m.Card == parser.CardManyToOne || m.Card == parser.CardOneToMany:
			many, one := l, r
			if m.Card == parser.CardOneToMany {
				many, one = r, l
			}
			for _, name := range m.Include {
				many = many.with(name, one.of(name))
			}
			return many
		default:
			return l
		}
	case *parser.Call:
		var in labelSizes
		for _, a := range e.Args {
			if t := a.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
				for name, s := range g.walk(a) {
					in = in.with(name, s)
				}
			} else {
				g.walk(a)
			}
		}
		switch e.Func.Name {
		case "label_replace":
			dst, repl, src := stringOf(e.Args[1]), stringOf(e.Args[2]), stringOf(e.Args[3])
			n := float64(strings.Count(repl, "$"))
			added := request.Size{PerValue: n * in.of(src).PerValue, Fixed: n*in.of(src).Fixed + float64(len(repl))}
			return in.with(dst, most(added, in.of(dst)))
		case "label_join":
			dst, sep := stringOf(e.Args[1]), stringOf(e.Args[2])
			added := request.Size{Fixed: float64(len(sep) * (len(e.Args) - 3))}
			for _, a := range e.Args[3:] {
				added = plus(added, in.of(stringOf(a)))
			}
			return in.with(dst, added)
		case "info":
			return in.with("", request.Size{PerValue: infoLabels})
		case "histogram_quantiles":
			g.Series *= float64(len(e.Args))
			return in.with(stringOf(e.Args[1]), request.Size{Fixed: longestFloat})
		}
		return in
	}
	return nil
}

// longestFloat is the length of the longest text of a value: with its point,
// -1.7976931348623157e308 written out.
const longestFloat = 320

// infoLabels is how many labels info() adds to a series, at most: by convention there are far
// fewer.
const infoLabels = 64

// stringOf returns the value of a string literal.
func stringOf(e parser.Expr) string {
	if s, ok := plan.Unwrap(e).(*parser.StringLiteral); ok {
		return s.Val
	}
	return ""
}
