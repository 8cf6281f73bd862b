package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// every has each kind of node of the language, and each of their parts that preparing a query may
// change. Regular expressions are left out, since no two are equal to a test.
var every = []string{
	`1`, `"text"`, `x`, `-x`, `(x)`, `x{a="b",f!="g"}`, `x @ 5`, `x @ start()`, `x offset 5m`, `x offset -(1m*2)`, `x[5m] @ end()`,
	`rate(x[5m])`, `rate(x[range()/2])`, `x[5m:1m]`, `max_over_time(x[step()*10:step()] offset 5m)`, `max_over_time(rate(x[5m])[1h:] @ 10)`,
	`sum by (a, b) (x)`, `sum without (b, a) (x)`, `topk(1 + 1, x)`, `quantile(scalar(y), x)`, `count_values("v", x)`, `sum(x @ 3) + sum(y)`,
	`x + y`, `x * on (b, a) group_left (d, c) y`, `x / ignoring (a) group_right y`, `x > bool 1`, `x and on () y`, `x + fill(0) y`,
	`label_replace(x, "a", "$1", "b", "(.*)")`, `histogram_avg(x)`, `histogram_quantile(0.9, sum by (le) (rate(x[5m])))`, `histogram_count(rate(x[5m]))`,
	`time() - timestamp(x)`, `start() + end() + range() + step()`, `x[5m] smoothed`, `increase(x[5m] anchored)`, `scalar(vector(1)) ^ 2`,
}

// TestRememberedExpressions: what is parsed again is what was parsed at first, also after a query
// has changed what it got.
func TestRememberedExpressions(t *testing.T) {
	plain, p := parser.NewParser(ParserOptions()), newRemembering(ParserOptions(), false)
	start := time.Unix(1000, 0)
	for _, text := range every {
		want, err := plain.ParseExpr(text)
		require.NoError(t, err, text)
		for range 3 {
			got, err := p.ParseExpr(text)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
			if got, err = promql.PreprocessExpr(got, start, start.Add(time.Hour), time.Minute); err != nil {
				continue
			}
			var calls []*parser.Call
			parser.Inspect(got, func(n parser.Node, _ []parser.Node) error { // as upstream's engine
				switch e := n.(type) {
				case *parser.VectorSelector:
					e.Name, e.Offset, e.UnexpandedSeriesSet = "changed", 7, nil
				case *parser.AggregateExpr:
					clear(e.Grouping)
				case *parser.BinaryExpr:
					if e.VectorMatching != nil {
						e.VectorMatching.Card, e.VectorMatching.On = 9, !e.VectorMatching.On
					}
				case *parser.Call:
					calls = append(calls, e)
				}
				return nil
			})
			for _, c := range calls {
				clear(c.Args)
			}
		}
	}
	for range 2 {
		_, err := p.ParseExpr(`sum by (`)
		require.Error(t, err)
	}
}

// TestRememberedExpressionsAreBounded: the memory is bounded, and expressions that are too large are
// parsed each time.
func TestRememberedExpressionsAreBounded(t *testing.T) {
	p := newRemembering(ParserOptions(), false)
	selector := func(matchers int) string { return "x{" + strings.Repeat(`a!="b",`, matchers) + "}" } // deep ones are parsed in quadratic time
	large := selector(1000)
	for i := range 400 {
		_, err := p.ParseExpr(large + strings.Repeat(" ", i))
		require.NoError(t, err)
		require.LessOrEqual(t, p.last.Used(), int64(rememberedBytes))
	}
	require.Nil(t, p.known(large))
	require.NotNil(t, p.known(large+strings.Repeat(" ", 399)))
	huge := selector(30_000)
	_, err := p.ParseExpr(huge)
	require.NoError(t, err)
	require.Nil(t, p.known(huge))
}
