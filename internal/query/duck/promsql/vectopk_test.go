package promsql_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// chosen is SQL that unpacks the series of a choice by group and joins their ids.
func chosen(call string) string {
	return "SELECT id, c.v FROM (SELECT unnest(" + call + ") AS c FROM m GROUP BY g) JOIN m ON c.i = m.i"
}

// TestChoice compares the choices, ties included: values from a few, so that most choices are
// between equals.
func TestChoice(t *testing.T) {
	values := map[string]func(*rand.Rand) float64{
		"any": vecRandom,
		"few": func(rng *rand.Rand) float64 { return []float64{gone, 1, 2, 3, 0}[rng.IntN(5)] },
		"edges": func(rng *rand.Rand) float64 {
			return vecEdges[rng.IntN(len(vecEdges))]
		},
		"tame": vecTame,
	}
	for name, value := range values {
		for _, c := range []struct{ threads, series, groups, steps int }{{1, 1, 1, 20}, {1, 9, 2, 300}, {2, 60, 3, 100}, {2, 2100, 2, 7}} {
			t.Run(fmt.Sprintf("values=%s/series=%d", name, c.series), func(t *testing.T) {
				db := openVec(t, c.threads)
				rng := rand.New(rand.NewPCG(10, uint64(c.series)))
				w := vecMake(c.series, c.groups, c.steps, func() float64 { return value(rng) })
				w.table(t, db, "m")
				for _, op := range []string{"topk", "bottomk", "limitk"} {
					for _, k := range []int{-1, 0, 1, 2, 3, 5, 17, 1 << 40} {
						query := fmt.Sprintf("%s by (g) (%d, m)", op, k)
						got := vecLists(t, db, chosen(fmt.Sprintf("prom_%s(i, v, 'k=%d n=%d')", op, k, c.steps)))
						vecCompare(t, w.eval(t, query, vecStart, vecStep, c.steps), got, 0, query)
					}
				}
			})
		}
	}
}

func TestChoiceOfNothing(t *testing.T) {
	db := openVec(t, 1)
	for _, op := range []string{"topk", "bottomk", "limitk"} {
		for _, from := range []string{
			"(SELECT 1::UINTEGER AS i, NULL::DOUBLE[] AS v)", "(SELECT 1::UINTEGER AS i, NULL::DOUBLE[] AS v) WHERE false",
			"(SELECT 1::UINTEGER AS i, prom_unpack(unhex('020000000000F07F')) AS v)", "(SELECT NULL::UINTEGER AS i, [1.0::DOUBLE] AS v)",
		} {
			got := vecLists(t, db, "SELECT '', CASE WHEN prom_"+op+"(i, v, 'k=1 n=3') IS NULL THEN [1.0::DOUBLE] END FROM "+from)
			require.Equal(t, []float64{1}, got[""], "%s %s", op, from)
		}
		got := vecLists(t, db, "SELECT c.i::VARCHAR, c.v FROM (SELECT unnest(prom_"+op+"(i::UINTEGER, v, 'k=1 n=2')) AS c FROM (VALUES (7, [3.0::DOUBLE])) t(i, v))")
		require.Equal(t, map[string][]float64{"7": {3}}, got, op)
	}
	require.ErrorContains(t, vecError(t, db, "SELECT prom_topk(1::UINTEGER, [1.0::DOUBLE], 'n=3')[1].v"), "key k is missing")
}
