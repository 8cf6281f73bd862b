package query

import (
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// size bounds the bytes of labels: perValue for each byte of the longest value that a label of a
// stored series has, and fixed ones.
type size struct{ perValue, fixed float64 }

func (a size) plus(b size) size { return size{a.perValue + b.perValue, a.fixed + b.fixed} }

func (a size) times(n int) size { return size{a.perValue * float64(n), a.fixed * float64(n)} }

func (a size) most(b size) size { return size{max(a.perValue, b.perValue), max(a.fixed, b.fixed)} }

// growth bounds what the labels of a statement's intermediate results take beside those of the
// stored series that they come from.
type growth struct {
	added  size    // to a series, at most, by any operation
	series float64 // results that one series may become
}

// labelSizes are the values of the labels that operations have set on the way to a result. Others
// are as stored.
type labelSizes map[string]size

func (l labelSizes) of(name string) size {
	if s, ok := l[name]; ok {
		return s
	}
	return size{perValue: 1}
}

func (l labelSizes) with(name string, s size) labelSizes {
	out := maps.Clone(l)
	if out == nil {
		out = labelSizes{}
	}
	out[name] = s
	return out
}

// growthOf bounds the labels of an expression's results. Values are doubled by label_join(v, "a",
// "", "a", "a"), so that no limit on the expression's length limits them.
func growthOf(e parser.Expr) growth {
	g := growth{series: 1}
	g.walk(e)
	return g
}

func (g *growth) walk(n parser.Expr) labelSizes {
	out := g.result(n)
	var all size
	for _, s := range out {
		all = all.plus(s)
	}
	g.added = g.added.most(all)
	return out
}

func (g *growth) result(n parser.Expr) labelSizes {
	switch e := n.(type) {
	case *parser.ParenExpr:
		return g.walk(e.Expr)
	case *parser.UnaryExpr:
		return g.walk(e.Expr)
	case *parser.StepInvariantExpr:
		return g.walk(e.Expr)
	case *parser.SubqueryExpr:
		return g.walk(e.Expr)
	case *parser.AggregateExpr:
		in := g.walk(e.Expr)
		if e.Op != parser.COUNT_VALUES {
			return in
		}
		g.series = 0 // as many as there are samples
		return in.with(stringOf(e.Param), size{fixed: longestFloat})
	case *parser.BinaryExpr:
		return g.binary(e)
	case *parser.Call:
		return g.call(e)
	}
	return nil
}

// longestFloat is the length of the longest text of a value: with its point,
// -1.7976931348623157e308 written out.
const longestFloat = 320

// infoLabels is how many labels info() adds to a series, at most: by convention there are far
// fewer.
const infoLabels = 64

func (g *growth) binary(e *parser.BinaryExpr) labelSizes {
	l, r := g.walk(e.LHS), g.walk(e.RHS)
	switch m := e.VectorMatching; {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return r
	case m == nil, e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return l
	case e.Op == parser.LOR:
		out := maps.Clone(l)
		for name, s := range r {
			out = out.with(name, s.most(l.of(name)))
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
}

func (g *growth) call(e *parser.Call) labelSizes {
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
		added := in.of(src).times(strings.Count(repl, "$")).plus(size{fixed: float64(len(repl))})
		return in.with(dst, added.most(in.of(dst)))
	case "label_join":
		dst, sep := stringOf(e.Args[1]), stringOf(e.Args[2])
		added := size{fixed: float64(len(sep) * (len(e.Args) - 3))}
		for _, a := range e.Args[3:] {
			added = added.plus(in.of(stringOf(a)))
		}
		return in.with(dst, added)
	case "info":
		return in.with("", size{perValue: infoLabels})
	case "histogram_quantiles":
		g.series *= float64(len(e.Args))
		return in.with(stringOf(e.Args[1]), size{fixed: longestFloat})
	}
	return in
}

// stringOf returns the value of a string literal.
func stringOf(e parser.Expr) string {
	for {
		switch x := e.(type) {
		case *parser.ParenExpr:
			e = x.Expr
		case *parser.StepInvariantExpr:
			e = x.Expr
		case *parser.StringLiteral:
			return x.Val
		default:
			return ""
		}
	}
}

// bytes bounds what the results of n stored series add, whose labels' values have at most longest
// bytes each, at steps times. An operation's argument and result are there at once.
func (g growth) bytes(n, longest int, steps int64) int64 {
	series := g.series
	if series == 0 {
		series = float64(steps)
	}
	return saturated(2 * series * float64(n) * (g.added.perValue*float64(longest) + g.added.fixed))
}
