package plan

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// TestSettled: a settled expression is planned as it is, and no plan changes it.
func TestSettled(t *testing.T) {
	for text, want := range map[string]bool{
		`x`:                                        true,
		`rate(x[5m] offset 1m)`:                    true,
		`1 - sum by (a) (rate(x[5m])) / y`:         true,
		`(x) > bool 2 and absent(y)`:               true,
		`time() - timestamp(x)`:                    true,
		`label_replace(x, "a", "$1", "b", "(.*)")`: true,

		`x @ 5`:                                 false,
		`x @ start()`:                           false,
		`x offset -(1m*2)`:                      false,
		`rate(x[range()/2])`:                    false,
		`max_over_time(x[5m:1m])`:               false,
		`x + start()`:                           false,
		`vector(1) + x`:                         false, // a part is the same at all steps
		`sum((x))`:                              false, // preprocessing removes the parentheses
		`histogram_count(x)`:                    false, // and lets the selector skip buckets
		`sum(x) + max_over_time(x[step()*10:])`: false,
	} {
		p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, ExperimentalDurationExpr: true})
		expr, err := p.ParseExpr(text)
		require.NoError(t, err, text)
		require.Equal(t, want, Settled(expr), text)
		before, err := p.ParseExpr(text)
		require.NoError(t, err, text)
		o := ranged(instant)
		o.Settled = want
		q, err := Prepare(expr, o)
		require.NoError(t, err, text)
		q.Build(map[*parser.VectorSelector]*Resolution{}) // no selector is known: the engine gets all
		require.Equal(t, before, expr, text)
	}
}
