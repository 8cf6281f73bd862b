package plan

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/plantest"
)

// operated returns the series of operated.txt.
func operated(t testing.TB) plantest.Memory {
	return plantest.Load(t, plantest.Read(t, "testdata/operated.txt"))
}

// requireAlike plans a query, lets upstream's engine evaluate the pushed subtrees separately, and
// requires that the rewritten query has upstream's answer to the whole. It returns the plan.
func requireAlike(t testing.TB, store storage.Queryable, text string, w window, delayed bool) *Plan {
	engine := testEngine(t, delayed)
	want := w.query(t, engine, store, text, nil).Exec(t.Context())
	o := w.options(delayed)
	// as after a failure with ErrForcedMonotonicity
	o.EngineQuantiles = strings.Contains(strings.Join(annotationsOf(want, text), "\n"), "fixed for monotonicity")
	plan := planFor(t, store, text, o)
	if namesMatter(plan) {
		return plan // upstream does not return a subtree's labels before names are dropped
	}
	got := w.query(t, engine, &simulated{Queryable: store, t: t, engine: engine, plan: plan}, text, plan.Expr).Exec(t.Context())
	if want.Err != nil {
		require.Error(t, got.Err, "%s\n%s", text, plan)
		require.Equal(t, errorText(want.Err), errorText(got.Err), "%s\n%s", text, plan)
		return plan
	}
	require.NoError(t, got.Err, "%s\n%s", text, plan)
	require.Equal(t, describe(matrix(want)), describe(matrix(got)), "%s\n%s", text, plan)
	require.Equal(t, annotationsOf(want, text), annotationsOf(got, text), "%s\n%s", text, plan)
	return plan
}

// wholly reports whether one statement answers a query, apart from the order of the results.
func wholly(p *Plan) bool {
	return len(p.Pushed) == 1 && isPushed(p.Expr)
}

// errorText returns an error without the series that it names: upstream names one of several, in no
// fixed order.
func errorText(err error) string {
	text, _, _ := strings.Cut(err.Error(), " {")
	return text
}
