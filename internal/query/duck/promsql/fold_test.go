package promsql_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// folded aggregates the series of a world with parts Folds that are joined, each of which has the
// series of every so many. It returns the values by the name of the group.
func folded(t *testing.T, w vecWorld, op string, groups, steps, parts int) map[string][]float64 {
	t.Helper()
	budget := promsql.NewBudget(0)
	defer func() { require.NoError(t, budget.Close(), "all memory is freed") }()
	folds, out := make([]*promsql.Fold, parts), map[string][]float64{}
	for k := range folds {
		f, err := promsql.NewFold(op, groups, steps, budget)
		require.NoError(t, err)
		defer f.Close()
		folds[k] = f
	}
	names := make([]string, groups)
	for i, s := range w {
		names[i%groups] = s.g
		require.NoError(t, folds[i%parts].Add(uint32(i%groups), s.v))
	}
	for _, f := range folds[1:] {
		require.NoError(t, folds[0].Join(f))
	}
	for g, name := range names {
		v := make([]float64, steps)
		present, err := folds[0].Result(uint32(g), v)
		require.NoError(t, err)
		if present {
			out[name] = v
		}
	}
	return out
}

// TestFold holds aggregates outside of SQL against upstream's engine: one Fold has its bits, and
// those that are joined differ by roundings alone.
func TestFold(t *testing.T) {
	for _, c := range []struct{ series, groups, steps int }{{3, 1, 800}, {50, 2, 300}, {40, 40, 10}, {2000, 3, 40}} {
		rng := rand.New(rand.NewPCG(14, uint64(c.series)))
		wild, tame := vecMake(c.series, c.groups, c.steps, func() float64 { return vecRandom(rng) }), vecMake(c.series, c.groups, c.steps, func() float64 { return vecTame(rng) })
		for i := range wild {
			for k := c.steps / 2; k < c.steps; k++ {
				wild[i].v[k] = []float64{gone, 1, math.Copysign(0, -1), math.MaxFloat64, 1e307, -1e308, 0.1}[rng.IntN(7)]
			}
		}
		for _, op := range []string{"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"} {
			query := op + " by (g) (m)"
			vecCompare(t, wild.eval(t, query, vecStart, vecStep, c.steps), folded(t, wild, op, c.groups, c.steps, 1), 0, query)
			if strings.HasPrefix(op, "std") { // those of parts differ by more
				continue
			}
			vecCompare(t, tame.eval(t, query, vecStart, vecStep, c.steps), folded(t, tame, op, c.groups, c.steps, 3), 1e-12, query+" of parts")
		}
	}
}

// TestFoldLimits: a Fold keeps to its budget, ends when that is cancelled, and names what it cannot
// do.
func TestFoldLimits(t *testing.T) {
	small := promsql.NewBudget(20_000)
	f, err := promsql.NewFold("sum", 10, 1000, small)
	require.NoError(t, err)
	v := make([]float64, 1000)
	require.NoError(t, f.Add(0, v))
	var full *promsql.MemoryError
	require.ErrorAs(t, f.Add(0, v), &full, "two planes more")
	require.EqualValues(t, 20_000, full.Limit)
	require.Greater(t, full.Needed, full.Limit)
	require.ErrorContains(t, f.Add(1, v[1:]), "999 values for 1000 steps")
	_, err = f.Result(0, v[1:])
	require.ErrorContains(t, err, "999 results for 1000 steps")
	f.Close()
	f.Close()
	require.NoError(t, small.Close())

	ended := promsql.NewBudget(0)
	f, err = promsql.NewFold("avg", 1, 1, ended)
	require.NoError(t, err)
	require.NoError(t, f.Add(0, v[:1]))
	ended.Cancel()
	_, err = f.Result(0, v[:1])
	require.ErrorIs(t, err, promsql.ErrCancelled)
	f.Close()
	require.NoError(t, ended.Close())

	open := promsql.NewBudget(0)
	_, err = promsql.NewFold("quantile", 1, 1, open)
	require.ErrorContains(t, err, `"quantile"`)
	_, err = promsql.NewFold("sum", 1, 0, open)
	require.ErrorContains(t, err, "0 steps")
	require.NoError(t, open.Close())
}
