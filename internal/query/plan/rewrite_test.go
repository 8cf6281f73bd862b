package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/plantest"
)

// rewritten returns the queries of rewritten.txt, and some with durations that are expressions.
func rewritten(t testing.TB) (out []string) {
	for _, s := range plantest.Sections(t, "testdata/rewritten.txt") {
		out = append(out, s.Lines...)
	}
	return append(out, `rate(g[step() + 60s])`, `g offset range()`)
}

var windows = []window{
	{900_000, 900_000, 0}, {600_000, 960_000, 60_000}, {600_000, 1_000_000, 45_000}, {617_123, 1_201_000, 17_001}, {0, 120_000, 30_000}, {1_500_000, 2_100_000, 150_000},
}

// TestRewrittenQueriesAnswerAlike plans queries, lets upstream's engine evaluate the pushed
// subtrees separately, and expects upstream's answer to the whole from the rewritten query: values,
// labels, errors and annotations.
func TestRewrittenQueriesAnswerAlike(t *testing.T) {
	store := promqltest.LoadedStorage(t, plantest.Read(t, "testdata/rewritable.txt"))
	queries := rewritten(t)
	for _, delayed := range []bool{false, true} {
		engine := testEngine(t, delayed)
		for _, w := range windows {
			t.Run(fmt.Sprintf("delayed=%t/%d-%d-%d", delayed, w.start, w.end, w.step), func(t *testing.T) {
				for _, text := range queries {
					want := w.query(t, engine, store, text, nil).Exec(t.Context())
					plan := planFor(t, store, text, w.options(delayed))
					if namesMatter(plan) {
						// upstream does not return a subtree's values before names are dropped
						continue
					}
					sim := &simulated{Queryable: store, t: t, engine: engine, plan: plan}
					got := w.query(t, engine, sim, text, plan.Expr).Exec(t.Context())
					if want.Err != nil {
						require.EqualError(t, got.Err, want.Err.Error(), "%s\n%s", text, plan)
						continue
					}
					require.NoError(t, got.Err, "%s\n%s", text, plan)
					require.Equal(t, describe(matrix(want)), describe(matrix(got)), "%s\n%s", text, plan)
					require.Equal(t, annotationsOf(want, text), annotationsOf(got, text), "%s\n%s", text, plan)
				}
			})
		}
	}
}

// namesMatter reports whether series of some subtree differ only in names that are to be dropped.
func namesMatter(p *Plan) bool {
	return slices.ContainsFunc(p.Pushed, func(s *Pushed) bool { return !distinct(atTheEnd(s)) })
}
