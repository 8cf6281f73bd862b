package plan

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/plantest"
)

// isPushed reports whether an expression is one pushed subtree, or a function that sorts one.
func isPushed(expr parser.Expr) bool {
	switch e := Unwrap(expr).(type) {
	case *parser.VectorSelector:
		return len(e.LabelMatchers) == 1 && e.LabelMatchers[0].Name == PushedLabel
	case *parser.Call:
		ordered := e.Func.Name == "scalar" || strings.HasPrefix(e.Func.Name, "sort")
		return ordered && isPushed(e.Args[0])
	case *parser.AggregateExpr:
		return (e.Op == parser.TOPK || e.Op == parser.BOTTOMK) && isPushed(e.Expr)
	}
	return false
}

// TestOperatorsAnswerAlike expects upstream's answers, errors and annotations from the pushed
// subtrees and the rest of a query.
func TestOperatorsAnswerAlike(t *testing.T) {
	store := operated(t)
	for _, s := range plantest.Sections(t, "testdata/operators.txt") {
		t.Run(s.Name, func(t *testing.T) {
			for _, text := range s.Lines {
				for _, w := range windows {
					if w.step > 0 && strings.HasSuffix(text, "m]") {
						continue // a range query cannot return a range
					}
					for _, delayed := range []bool{false, true} {
						requireAlike(t, store, text, w, delayed)
					}
				}
			}
		})
	}
}

// TestOrderOfInstantAnswers expects upstream's order from functions that sort.
func TestOrderOfInstantAnswers(t *testing.T) {
	store := operated(t)
	w := window{900_000, 900_000, 0}
	for _, text := range []string{
		`sort(a)`, `sort_desc(a * 2)`, `sort_by_label(a, "inst")`, `sort_by_label_desc(a, "inst", "job")`, `topk(2, a)`, `bottomk(3, a)`, `topk by (job) (1, a)`, `topk(3, a) * 2`, `topk(3, a) and b`,
		`-topk(3, a)`, `label_replace(topk(3, a), "x", "$1", "job", "(.*)")`, `topk(3, a) * on (inst) group_left (ver) b_info`, `b_info * on (inst) group_right (ver) topk(3, a)`, `topk(2, a) or bottomk(2, b)`, `(topk(3, a))`,
	} {
		engine := testEngine(t, false)
		want := w.query(t, engine, store, text, nil).Exec(t.Context())
		require.NoError(t, want.Err, text)
		plan := planFor(t, store, text, w.options(false))
		require.NotEmpty(t, plan.Pushed, text)
		got := w.query(t, engine, &simulated{Queryable: store, t: t, engine: engine, plan: plan}, text, plan.Expr).Exec(t.Context())
		require.NoError(t, got.Err, text)
		require.Equal(t, want.String(), got.String(), "%s\n%s", text, plan)
	}
}

// TestRandomOperatorsAnswerAlike is TestOperatorsAnswerAlike over random label sets and
// expressions, and expects that most are pushed.
func TestRandomOperatorsAnswerAlike(t *testing.T) {
	const queries = 3000
	whole, parts := 0, 0
	kept := map[string]int{}
	for seed := range queries {
		c := plantest.NewChance(seed)
		store := c.Series()
		text := c.Vector(3)
		if _, err := testParser.ParseExpr(text); err != nil {
			continue // such as a label in on and in group_left
		}
		w := window{600_000, 660_000, 60_000}
		if c.IntN(3) == 0 {
			w = window{660_000, 660_000, 0}
		}
		plan := requireAlike(t, store, text, w, c.IntN(2) == 0)
		if wholly(plan) {
			whole++
		}
		if len(plan.Pushed) > 0 {
			parts++
		}
		for _, k := range plan.Kept {
			kept[k[strings.LastIndex(k, ": ")+2:]]++
		}
	}
	t.Logf("of %d queries %d were pushed whole, %d at least in part; kept: %v", queries, whole, parts, kept)
	require.Greater(t, whole, queries/5)
	require.Greater(t, parts, queries/2)
}
