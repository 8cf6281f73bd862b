package query_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestFolds evaluates aggregations of more values than are held, whose series are added up as they
// are read, and topk, which holds them.
func TestFolds(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, laketest.PushNone)
	folding := laketest.New(t, store, query.Settings{MinPushedSamples: 1, Threads: 3, QueryMemoryBytes: 8 << 20})
	laketest.WriteMixture(plain, tenant.Default, laketest.PushRowsOf(100))
	for _, text := range []string{
		`max by (job) (max_over_time(m1[5m])) - on () group_left avg(rate(m1[5m]))`, `topk(1, sum by (job) (m1)) / on () group_left count(m1)`, `topk(3, m1)`,
		`sum(sum by (job) (m1)) - min(m1)`, `stddev(m1) - on () group_right () (1 - sum by (job) (m1))`,
	} {
		a := lastHours(text)
		a.Step = 2500 * time.Millisecond
		got := folding.Exec(t.Context(), a)
		laketest.Same(t, plain.Exec(t.Context(), a), got, text)
		require.Equal(t, got.String(), folding.Exec(t.Context(), a).String(), "%s: the order of additions is the same each time", text)
	}
}

// TestFoldsAreExplained: explain says which aggregations are folds, and that no statement runs for
// one that is a whole subtree.
func TestFoldsAreExplained(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MinPushedSamples: 1})
	laketest.WriteMixture(l, tenant.Default, laketest.PushRowsOf(100))
	ask := func(text string, step time.Duration) explain.Subtree {
		out, err := explain.Explain(t.Context(), l.Engine().(*engine.Engine), l, request.Question{Text: text, Start: laketest.Now().Add(-200 * time.Minute), End: laketest.Now(), Step: step, Analyze: true})
		require.NoError(t, err)
		require.Len(t, out.Pushed, 1)
		return out.Pushed[0]
	}
	many := ask(`sum(rate(m1[5m]))`, 2500*time.Millisecond)
	require.True(t, many.Tree.Folded)
	require.Len(t, many.Statements, 1)
	require.Empty(t, many.Statements[0].SQL)
	require.EqualValues(t, 1, many.Statements[0].Analysis.Rows)
	require.False(t, ask(`sum(rate(m1[5m]))`, time.Minute).Tree.Folded, "few values are added in upstream's order")

	both := ask(`stddev(m1) - sum(rate(m1[5m]))`, 2500*time.Millisecond) // the values of m1 are too many without a statement
	require.False(t, both.Tree.Folded)
	require.False(t, both.Tree.Children[0].Folded)
	require.True(t, both.Tree.Children[1].Folded)
	require.Contains(t, both.Statements[0].SQL, "prom_rows(1)")
	require.NotContains(t, both.Statements[0].SQL, "prom_sum")
}
