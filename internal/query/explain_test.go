package query_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/tests/support/laketest"
)

func question(text string) query.Question {
	return query.Question{Text: text, Start: laketest.Now().Add(-time.Hour), End: laketest.Now(), Step: time.Minute}
}

// TestExplainReplays: the equivalent SQL has the rows of the query in every layout, and the
// statement of a subtree names its leaves and files.
func TestExplainReplays(t *testing.T) {
	for _, layout := range laketest.Layouts {
		t.Run(layout.Name, func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
			layout.Write(l, tenant.Default, laketest.PushRows())
			for _, text := range []string{`sum by (job) (rate(m1[5m]))`, `m1`, `m1 / on (i, job) m2`, `max(m2{i="1"})`} {
				q := question(text)
				ex, err := l.Explain(t.Context(), q)
				require.NoError(t, err, text)
				require.Len(t, ex.Pushed, 1, text)
				require.Equal(t, text, ex.Pushed[0].Expr)
				require.Empty(t, ex.Kept)
				require.Len(t, ex.Pushed[0].Statements, 1)
				st := ex.Pushed[0].Statements[0]
				require.NotEmpty(t, st.Files)
				if text == "m1" { // a leaf alone needs no statement
					require.Empty(t, st.SQL)
					require.Equal(t, plan.DirectDriver, st.Driver)
				} else {
					require.Contains(t, st.SQL, "FROM prom_rows(0)", text)
					require.Equal(t, plan.DuckDBDriver, st.Driver)
				}
				before := l.Counted("promlake_query_subtrees_total", string(st.Driver))
				want := laketest.WithoutPayloads(l.Points(l.Exec(t.Context(), laketest.Query{Text: text, Start: q.Start, End: q.End, Step: q.Step})))
				require.Equal(t, 1.0, l.Counted("promlake_query_subtrees_total", string(st.Driver))-before, "the driver that explain names")
				require.NotEmpty(t, want)
				require.Equal(t, want, laketest.WithoutPayloads(l.Rows(ex.EquivalentSQL)), text)
			}
		})
	}
}

func TestExplainAnalyze(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	laketest.Layouts[1].Write(l, tenant.Default, laketest.PushRows())
	q := question(`sum by (job) (rate(m1[5m])) + count_values("v", m2)`)
	q.Analyze = true
	ex, err := l.Explain(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, ex.Pushed, 2)
	require.Contains(t, ex.Kept[0], "count_values")
	require.Contains(t, ex.Engine, `__promlake_pushed__="0"`)
	a := ex.Pushed[0].Statements[0].Analysis
	require.Equal(t, int64(3), a.Rows, "one row per job")
	require.Positive(t, a.PeakBytes)
	require.Contains(t, a.Leaves[0].Op, "rate")
	require.Equal(t, int64(12), a.Leaves[0].Rows)
	require.Positive(t, a.Leaves[0].Samples)
	b, err := json.Marshal(a.Operator)
	require.NoError(t, err)
	require.Contains(t, string(b), "prom_sum")
	require.Len(t, ex.Selectors, 2)
	require.Equal(t, 12, ex.Selectors[0].Series)
	require.Zero(t, ex.Cost.Gets, "the store is a directory")
	require.Positive(t, ex.Cost.Bytes)
}

// TestExplainWithoutStatements: an estimate has the selectors and the cost of the whole plan.
func TestExplainWithoutStatements(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	laketest.Layouts[0].Write(l, tenant.Default, laketest.PushRows())
	q := question(`sum by (job) (rate(m1[5m]))`)
	want, err := l.Explain(t.Context(), q)
	require.NoError(t, err)
	q.WithoutStatements = true
	got, err := l.Explain(t.Context(), q)
	require.NoError(t, err)
	require.NotEmpty(t, want.Pushed[0].Statements)
	want.Pushed[0].Statements, want.EquivalentSQL = want.Pushed[0].Statements[:0], ""
	require.Equal(t, want, got)
	require.Positive(t, got.Selectors[0].Samples)
}

func TestExplainSmallQuery(t *testing.T) {
	l := laketest.New(t, &laketest.Remote{Store: laketest.NewDir(t)}, query.Settings{})
	laketest.Layouts[1].Write(l, tenant.Default, laketest.PushRows())
	ex, err := l.Explain(t.Context(), query.Question{Text: `count_values("v", m1)`, End: laketest.Now()})
	require.NoError(t, err)
	require.Empty(t, ex.Pushed)
	require.Len(t, ex.Kept, 2)
	require.Contains(t, ex.Kept[0], "makes labels of values")
	require.Contains(t, ex.Kept[1], "fewer than")
	require.Equal(t, 1, ex.Cost.Lists)
	require.Greater(t, ex.Cost.Gets, 1, "the manifest, and some samples")
	require.Positive(t, ex.Cost.Dollars)

	ex, err = l.Explain(t.Context(), query.Question{Text: `sum(m1)`, End: laketest.Now(), Analyze: true})
	require.NoError(t, err)
	require.Empty(t, ex.Kept)
	require.Len(t, ex.Pushed, 1)
	st := ex.Pushed[0].Statements[0]
	require.Empty(t, st.SQL)
	require.Equal(t, plan.DirectDriver, st.Driver)
	require.NotEmpty(t, ex.EquivalentSQL)
	require.Equal(t, int64(1), st.Analysis.Rows)
	require.Nil(t, st.Analysis.Operator)
}

func TestExplainBadQuery(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	for text, want := range map[string]string{`sum(`: "parse error", `m1[5m]`: "invalid expression type"} {
		_, err := l.Explain(t.Context(), question(text))
		var bad *explain.QuestionError
		require.ErrorAs(t, err, &bad, text)
		require.True(t, strings.Contains(err.Error(), want), err)
	}
}
