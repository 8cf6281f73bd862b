package plantest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
	"github.com/promlake/promlake/tests/support/plantest"
)

// TestRewrittenQueriesAnswerAlike is TestStatementsAnswerAlike for the queries of rewritten.txt, of
// which the engine evaluates a part.
func TestRewrittenQueriesAnswerAlike(t *testing.T) {
	l := openLake(t, plantest.Load(t, plantest.Read(t, "../testdata/rewritable.txt")))
	for _, s := range plantest.Sections(t, "../testdata/rewritten.txt") {
		t.Run(s.Name, func(t *testing.T) {
			for _, delayed := range []bool{false, true} {
				e := engine(t, delayed)
				for _, text := range s.Lines {
					for _, w := range windows {
						want := w.answer(t, e, l.series, text, nil)
						got, p := l.ask(t, e, text, w, delayed, false)
						requireAlike(t, want, got, text, p)
					}
				}
			}
		})
	}
}

// rows runs the statement of a subtree, or of a part of one.
func (l *lake) rows(t testing.TB, p *plan.Pushed) []vector.Row {
	scans, release := l.scans(t, p)
	defer release()
	budget := promsql.NewBudget(1 << 28)
	s := p.Statement(scans, fmt.Sprint(budget.ID()))
	var out []vector.Row
	err := l.db.Each(t.Context(), s.SQL, s.Args, []string{duck.UInteger, duck.Doubles}, func(n int, c []duck.Vector) error {
		at, values := c[1].List()
		for k, i := range c[0].Uint32s()[:n] {
			require.Less(t, int(i), len(p.Labels), "%s\n%s", p, s.SQL)
			out = append(out, vector.Row{I: i, V: slices.Clone(values.Float64s()[at[k].Offset : at[k].Offset+at[k].Length])})
		}
		return nil
	})
	require.NoError(t, err, "%s\n%s", p, s.SQL)
	require.NoError(t, budget.Close())
	slices.SortFunc(out, func(a, b vector.Row) int { return int(a.I) - int(b.I) })
	return out
}

// TestPartsMakeTheWhole runs subtrees whole and in parts, and expects equal results.
func TestPartsMakeTheWhole(t *testing.T) {
	var queries []string
	for _, f := range []string{"rewritten", "operators"} {
		for _, s := range plantest.Sections(t, "../testdata/"+f+".txt") {
			queries = append(queries, s.Lines...)
		}
	}
	_, more, _ := strings.Cut(plantest.Read(t, "../testdata/operated.txt"), "load 30s\n")
	l := openLake(t, plantest.Load(t, plantest.Read(t, "../testdata/rewritable.txt")+more))
	w := windows[1]
	run := &executed{lake: l, t: t}
	inParts, annotated := 0, 0
	for _, text := range queries {
		expr, err := promqlParser.ParseExpr(text)
		require.NoError(t, err)
		o := plan.Options{Start: w.start, End: w.end, Step: w.step, Lookback: lookback, DefaultSubqueryStep: subqueryStep, EngineQuantiles: true}
		q, err := prepare(expr, o)
		require.NoError(t, err)
		for _, p := range q.Build(l.resolve(q.Selectors())).Pushed {
			for _, limit := range []int64{60, 100} {
				parts, merge, ok := p.Partition(limit)
				if !ok {
					continue
				}
				inParts++
				var results [][]vector.Row
				raised, ofParts := plan.Raised{}, plan.Raised{}
				p.Raise(run.leaves(t.Context(), p), raised)
				for _, part := range parts {
					results = append(results, l.rows(t, part))
					part.Raise(run.leaves(t.Context(), part), ofParts)
				}
				require.Equal(t, raised, ofParts, "%s in parts of %d\n%s", text, limit, p)
				annotated += len(raised)
				got, ok, err := merge(results, run.memory())
				require.NoError(t, err)
				if ok {
					requireSameRows(t, p, present(l.rows(t, p)), present(got), fmt.Sprintf("%s in parts of %d\n%s", text, limit, p))
				}
			}
		}
	}
	require.Greater(t, inParts, len(queries)/2)
	require.Greater(t, annotated, 10)
}

// present leaves out rows without a value.
func present(rows []vector.Row) []vector.Row {
	return slices.DeleteFunc(rows, func(r vector.Row) bool {
		return !slices.ContainsFunc(r.V, func(f float64) bool { return !value.IsStaleNaN(f) })
	})
}

func requireSameRows(t testing.TB, p *plan.Pushed, want, got []vector.Row, msg string) {
	require.Len(t, got, len(want), msg)
	for i := range want {
		require.Equal(t, want[i].I, got[i].I, msg)
		for k := range p.Grid.N {
			a, b := want[i].V[k%len(want[i].V)], got[i].V[k%len(got[i].V)]
			require.Equal(t, value.IsStaleNaN(a), value.IsStaleNaN(b), msg)
			require.True(t, same(a, b), "series %d, step %d: %v and %v: %s", want[i].I, k, a, b, msg)
		}
	}
}
