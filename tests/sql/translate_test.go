package sql

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/plantest"
)

// leftToPromQL are what a translation may leave to promql().
var leftToPromQL = []string{"count_values"}

// TestDashboardsAreTranslated: for each expression of the dashboards, the statement has the rows of
// the query, bit for bit.
func TestDashboardsAreTranslated(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	texts := plantest.Lines(t, "../../internal/query/plan/testdata/dashboards.txt")
	laketest.WriteMixture(l, tenant.Default, dashboardRows(t, texts))
	var some atomic.Int64
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, text := range texts {
		a := laketest.Query{Text: text, Start: laketest.Now().Add(-10 * time.Minute), End: laketest.Now().Add(-20 * time.Second), Step: 90 * time.Second}
		if i%8 == 0 {
			a.Start, a.Step = a.End, 0
		}
		workers.Go(func() error {
			sql := translated(t, a)
			for _, reason := range sql.Kept {
				assert.True(t, slices.ContainsFunc(leftToPromQL, func(part string) bool { return strings.HasSuffix(reason, part) }), reason)
			}
			want := laketest.WithoutPayloads(l.Points(l.Exec(t.Context(), a)))
			assert.Equal(t, want, laketest.WithoutPayloads(l.Rows(sql.SQL)), "%s\n%s", a, sql.SQL)
			some.Add(int64(len(want)))
			return nil
		})
	}
	require.NoError(t, workers.Wait())
	require.Greater(t, some.Load(), int64(1000))
}

// dashboardRows are series of the metrics that expressions name.
func dashboardRows(t *testing.T, texts []string) (rows []segment.Row) {
	shelf, rng, seen := plantest.ReadShelf(t, "../../internal/query/plan/testdata/world.txt"), rand.New(rand.NewPCG(7, 8)), map[string]bool{}
	for _, text := range texts {
		expr, err := parser.NewParser(query.ParserOptions()).ParseExpr(text)
		require.NoError(t, err)
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok || seen[s.Name] {
				return nil
			}
			seen[s.Name] = true
			for _, ls := range shelf.Series(t, s.Name) {
				rows = append(rows, segment.Row{Labels: ls, Floats: randomFloats(rng)})
			}
			return nil
		})
	}
	slices.SortFunc(rows, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
	return rows
}

// randomFloats are samples of 40 minutes, with resets and gaps.
func randomFloats(rng *rand.Rand) (out []segment.Float) {
	v := float64(rng.IntN(10))
	for at := laketest.Now().Add(-40 * time.Minute).UnixMilli(); at < laketest.Now().UnixMilli(); at += 30_000 {
		if v += rng.Float64(); rng.IntN(30) == 0 {
			v = 0
		}
		if rng.IntN(10) > 0 {
			out = append(out, segment.Float{T: at + rng.Int64N(3000), V: v})
		}
	}
	return out
}

// translated is the statement of a query.
func translated(t *testing.T, a laketest.Query) explain.Translation {
	s, err := explain.Translate(request.Question{Text: a.Text, Start: a.Start, End: a.End, Step: a.Step, Lookback: 5 * time.Minute})
	require.NoError(t, err)
	return s
}
