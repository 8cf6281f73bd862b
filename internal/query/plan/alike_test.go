package plan

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/plan/plantest"
)

// operated returns the series of operated.txt.
func operated(t testing.TB) plantest.Memory {
	return plantest.Load(t, plantest.Read(t, "testdata/operated.txt"))
}

// requireAlike plans a query, lets upstream's engine evaluate the pushed subtrees by themselves,
// and requires from what is left of the query what upstream says to all of it. It returns the plan.
func requireAlike(t testing.TB, store storage.Queryable, text string, w window, delayed bool) *Plan {
	engine := testEngine(t, delayed)
	want := w.query(t, engine, store, text, nil).Exec(t.Context())
	o := w.options(delayed)
	// as after ErrForcedMonotonicity
	o.EngineQuantiles = strings.Contains(strings.Join(said(want, text), "\n"), "fixed for monotonicity")
	plan := planFor(t, store, text, o)
	if namesMatter(plan) {
		return plan // upstream cannot say what a subtree's labels are before names are dropped
	}
	got := w.query(t, engine, &simulated{Queryable: store, t: t, engine: engine, plan: plan}, text, plan.Expr).Exec(t.Context())
	if want.Err != nil {
		require.Error(t, got.Err, "%s\n%s", text, plan)
		require.Equal(t, errorText(want.Err), errorText(got.Err), "%s\n%s", text, plan)
		return plan
	}
	require.NoError(t, got.Err, "%s\n%s", text, plan)
	require.Equal(t, describe(matrix(want)), describe(matrix(got)), "%s\n%s", text, plan)
	require.Equal(t, said(want, text), said(got, text), "%s\n%s", text, plan)
	return plan
}

// wholly tells whether one statement answers a query, or all of it but the order of the results.
func wholly(p *Plan) bool {
	return len(p.Pushed) == 1 && isPushed(p.Expr)
}

// errorText returns an error without the series that it names: which of several they are is by
// chance.
func errorText(err error) string {
	text, _, _ := strings.Cut(err.Error(), " {")
	return text
}
