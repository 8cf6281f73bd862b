package promsql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// histograms returns a world of classic histograms, some regular and others out of order, with
// gaps, rounding errors and odd bounds.
func histograms(rng *rand.Rand, count, steps int) vecWorld {
	bounds := [][]string{
		{"0.1", "0.5", "1", "2.5", "10", "+Inf"}, {"-5", "-1", "0", "3", "+Inf"}, {"1", "2"}, {"+Inf"}, {"5", "+Inf"}, {"1", "1.0", "2", "+Inf", "Inf"}, {"-Inf", "0", "+Inf"},
	}
	var w vecWorld
	for h := range count {
		kind := rng.IntN(4)
		list := bounds[rng.IntN(len(bounds))]
		first := len(w)
		for _, le := range list {
			w = append(w, vecSeries{name: "m", id: fmt.Sprint(h), le: le, v: make([]float64, steps)})
		}
		for k := range steps {
			sum := 0.0
			for b := range list {
				sum += float64(rng.IntN(20))
				v := sum
				switch kind {
				case 1:
					v = vecRandom(rng)
				case 2:
					v *= 1 + float64(rng.IntN(3)-1)*1e-14
				case 3:
					v += float64(rng.IntN(3) - 1)
				}
				if rng.IntN(12) == 0 {
					v = gone
				}
				w[first+b].v[k] = v
			}
		}
	}
	rng.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
	return w
}

const leDouble = "CASE le WHEN '+Inf' THEN 'inf' WHEN 'Inf' THEN 'inf' WHEN '-Inf' THEN '-inf' ELSE le END::DOUBLE"

func TestHistogramQuantile(t *testing.T) {
	for _, c := range []struct{ threads, histograms, steps int }{{1, 60, 60}, {2, 900, 11}} {
		db := openVec(t, c.threads)
		w := histograms(rand.New(rand.NewPCG(11, uint64(c.steps))), c.histograms, c.steps)
		w.table(t, db, "m")
		for _, phi := range []string{"0", "0.5", "0.99", "1", "0.3", "-1", "2", "NaN"} {
			for _, spec := range []string{"", ", ''"} {
				query := "histogram_quantile(" + phi + ", m)"
				got := vecLists(t, db, "SELECT id, prom_histogram_quantile(['"+phi+"'::DOUBLE], "+leDouble+", v"+spec+") FROM m GROUP BY id")
				vecCompare(t, w.eval(t, query, vecStart, vecStep, c.steps), got, 0, query)
			}
		}
		// A quantile per step: the times are not below 1.
		got := vecLists(t, db, fmt.Sprintf("SELECT id, prom_histogram_quantile(prom_binary('/', prom_binary('%%', prom_time('start=%d step=%d n=%d'), [7.0::DOUBLE]), [6.0::DOUBLE]), %s, v) FROM m GROUP BY id",
			vecStart, vecStep, c.steps, leDouble))
		vecCompare(t, w.eval(t, "histogram_quantile(time() % 7 / 6, m)", vecStart, vecStep, c.steps), got, 0, "a quantile per step")
	}
}

func TestHistogramForced(t *testing.T) {
	db := openVec(t, 1)
	forced := func(phi string, counts ...string) bool {
		t.Helper()
		var rows []string
		for i, c := range counts {
			le := fmt.Sprint(i)
			if i == len(counts)-1 {
				le = "inf"
			}
			rows = append(rows, "('"+le+"'::DOUBLE, ["+c+"]::DOUBLE[])")
		}
		b := promsql.NewBudget(0)
		vecLists(t, db, fmt.Sprintf("SELECT '', prom_histogram_quantile(['%s'::DOUBLE], le, v, 'budget=%d') FROM (VALUES %s) t(le, v)", phi, b.ID(), strings.Join(rows, ", ")))
		open := b.ForcedMonotonicity()
		require.NoError(t, b.Close())
		require.Equal(t, open, b.ForcedMonotonicity(), "a closed budget reports the same")
		return open
	}
	require.False(t, forced("0.5", "1, 1", "2, 2", "3, 3"))
	require.True(t, forced("0.5", "1, 1", "2, 2", "3, 1"))
	require.False(t, forced("0.5", "1e15", "1000000000000000.125", "1e15")) // rounding
	require.False(t, forced("2", "3, 3", "2, 2", "1, 1"), "quantiles beyond 0 to 1 need no counts")
	require.False(t, forced("0.5", "", ""), "no bucket has a value")
}

func TestHistogramErrors(t *testing.T) {
	db := openVec(t, 1)
	require.Empty(t, vecLists(t, db, "SELECT '', prom_histogram_quantile([0.5::DOUBLE], 1::DOUBLE, NULL)"))
	require.Empty(t, vecLists(t, db, "SELECT '', prom_histogram_quantile(NULL, 1::DOUBLE, [1.0::DOUBLE])"))
	require.Empty(t, vecLists(t, db, "SELECT '', prom_histogram_quantile([0.5::DOUBLE], NULL, [1.0::DOUBLE])"))
	require.ErrorContains(t, vecError(t, db, "SELECT prom_histogram_quantile([0.5::DOUBLE], 'nan'::DOUBLE, [1.0::DOUBLE])"), "an upper bound is NaN")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_histogram_quantile([0.5::DOUBLE, 0.5], 1::DOUBLE, [1.0::DOUBLE, 2, 3])"), "lists of 3 and 2 values")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_histogram_quantile([0.5::DOUBLE], 1::DOUBLE, [1.0::DOUBLE], 'k=3')"), `unknown key "k"`)
}
