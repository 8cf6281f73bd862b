package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// ordered are the aggregates whose results depend on the order of the series by their rounding.
var ordered = []string{"sum", "avg", "stddev", "stdvar"}

// unordered are those that do not.
var unordered = []string{"min", "max", "count", "group"}

// TestAggregates compares aggregates over groups, in one thread and in several, with fewer and with
// more rows than a chunk has.
func TestAggregates(t *testing.T) {
	for _, c := range []struct{ threads, series, groups, steps int }{{1, 1, 1, 5}, {1, 40, 3, 60}, {2, 7000, 4, 9}, {4, 5000, 2600, 3}} {
		t.Run(fmt.Sprintf("threads=%d/series=%d/groups=%d", c.threads, c.series, c.groups), func(t *testing.T) {
			db := openVec(t, c.threads)
			rng := rand.New(rand.NewPCG(5, uint64(c.series)))
			w := vecMake(c.series, c.groups, c.steps, func() float64 { return vecTame(rng) })
			w.table(t, db, "m")
			for _, op := range append(ordered, unordered...) {
				query, tolerance := op+" by (g) (m)", 1e-12
				if op == "stddev" || op == "stdvar" {
					tolerance = 1e-6 // of values that are nearly equal only rounding errors are left, and they go by the order
				}
				want := w.eval(t, query, vecStart, vecStep, c.steps)
				for _, args := range []string{"v", "v, ''", "v, 'budget=0'"} {
					vecCompare(t, want, vecLists(t, db, "SELECT g, prom_"+op+"("+args+") FROM m GROUP BY g"), tolerance, query)
				}
				vecCompare(t, want, vecLists(t, db, "SELECT g, prom_"+op+"(i, v, '') FROM m GROUP BY g"), 0, query+" in order")
			}
		})
	}
}

// TestAggregatesInOrder has any values in the order of the ordinals, where all bits are upstream's.
func TestAggregatesInOrder(t *testing.T) {
	for _, c := range []struct{ threads, series, groups, steps int }{{1, 3, 1, 800}, {1, 50, 2, 300}, {2, 4000, 3, 40}} {
		db := openVec(t, c.threads)
		rng := rand.New(rand.NewPCG(14, uint64(c.series)))
		w := vecMake(c.series, c.groups, c.steps, func() float64 { return vecRandom(rng) })
		for i := range w { // the last steps have but a few absent values, and large ones
			for k := c.steps / 2; k < c.steps; k++ {
				w[i].v[k] = []float64{gone, 1, math.Copysign(0, -1), math.MaxFloat64, 1e307, -1e308, 0.1}[rng.IntN(7)]
			}
		}
		w.table(t, db, "m")
		for _, op := range append(ordered, unordered...) {
			query := op + " by (g) (m)"
			got := vecLists(t, db, "SELECT g, prom_"+op+"(i, v, '') FROM m GROUP BY g")
			vecCompare(t, w.eval(t, query, vecStart, vecStep, c.steps), got, 0, query)
		}
	}
}

// TestAggregateEdges has NaN, infinities, zeros of both signs and extreme magnitudes in groups of a
// few series, whose order only matters for the sign of zero and for sums that overflow on the way;
// where it does, the values of all orders are allowed.
func TestAggregateEdges(t *testing.T) {
	db := openVec(t, 1)
	rng := rand.New(rand.NewPCG(6, 6))
	for round := range 30 {
		w := vecMake(1+rng.IntN(3), 1, 200, func() float64 {
			if rng.IntN(3) == 0 {
				return vecTame(rng)
			}
			return vecEdges[rng.IntN(len(vecEdges))]
		})
		w.table(t, db, "m")
		for _, op := range append(ordered, unordered...) {
			got := vecLists(t, db, "SELECT g, prom_"+op+"(v) FROM m GROUP BY g")[w[0].g]
			var orders [][]float64
			permute(len(w), func(p []int) {
				turned := make(vecWorld, len(w))
				for i, j := range p {
					turned[i] = w[j]
				}
				orders = append(orders, turned.eval(t, op+" by (g) (m)", vecStart, vecStep, w.steps())[w[0].g])
			})
			for k := range got {
				ok := false
				for _, want := range orders {
					ok = ok || vecSame(want[k], got[k], 1e-12) || (want[k] == 0 && got[k] == 0)
				}
				if !ok {
					t.Errorf("round %d: %s at step %d: got %v, upstream has %v", round, op, k, got[k], column(orders, k))
				}
			}
		}
	}
}

func column(lists [][]float64, k int) (values []float64) {
	for _, l := range lists {
		values = append(values, l[k])
	}
	return values
}

// permute calls f with every permutation of 0..n-1.
func permute(n int, f func([]int)) {
	p := make([]int, 0, n)
	used := make([]bool, n)
	var next func()
	next = func() {
		if len(p) == n {
			f(p)
			return
		}
		for i := range n {
			if used[i] {
				continue
			}
			used[i], p = true, append(p, i)
			next()
			used[i], p = false, p[:len(p)-1]
		}
	}
	next()
}

// TestAverageOverflow has sums that overflow, so that upstream goes over to the incremental mean,
// and states that are merged in that mode.
func TestAverageOverflow(t *testing.T) {
	for _, threads := range []int{1, 4} {
		db := openVec(t, threads)
		rng := rand.New(rand.NewPCG(7, 7))
		w := vecMake(6000, 1, 8, func() float64 { return 1e307 * (1 + rng.Float64()) })
		for i := range w {
			w[i].v[0] = vecTame(rng) // this step never overflows
		}
		w.table(t, db, "m")
		got := vecLists(t, db, "SELECT g, prom_avg(v) FROM m GROUP BY g")
		vecCompare(t, w.eval(t, "avg by (g) (m)", vecStart, vecStep, 8), got, 1e-12, "avg")
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct{ threads, series, groups, steps int }{{1, 1, 1, 300}, {1, 2, 1, 300}, {1, 37, 3, 50}, {2, 5000, 2, 11}} {
		db := openVec(t, c.threads)
		rng := rand.New(rand.NewPCG(8, uint64(c.series)))
		w := vecMake(c.series, c.groups, c.steps, func() float64 { return vecRandom(rng) })
		w.table(t, db, "m")
		for _, phi := range []string{"0", "1", "0.5", "0.9", "0.123", "-0.0", "-1", "1.5", "NaN", "Inf"} {
			query := "quantile by (g) (" + phi + ", m)"
			got := vecLists(t, db, "SELECT g, prom_quantile(i, v, 'phi="+phi+"') FROM m GROUP BY g")
			vecCompare(t, w.eval(t, query, vecStart, vecStep, c.steps), got, 0, query)
		}
	}
}

// TestQuantileOfZeros: of zeros of both signs, Go's sort decides which one is the result. It moves
// NaNs, too.
func TestQuantileOfZeros(t *testing.T) {
	db := openVec(t, 1)
	rng := rand.New(rand.NewPCG(8, 1))
	some := []float64{0, math.Copysign(0, -1), math.NaN(), 1, gone}
	w := vecMake(60, 2, 40, func() float64 { return some[rng.IntN(len(some))] })
	w.table(t, db, "m")
	for _, phi := range []string{"0", "0.3", "0.4", "0.5", "0.6", "1"} {
		query := "quantile by (g) (" + phi + ", m)"
		got := vecLists(t, db, "SELECT g, prom_quantile(i, v, 'phi="+phi+"') FROM m GROUP BY g")
		vecCompare(t, w.eval(t, query, vecStart, vecStep, 40), got, 0, query)
	}
}

func TestAbsentAndScalar(t *testing.T) {
	db := openVec(t, 2)
	for _, count := range []int{1, 2, 5000} {
		rng := rand.New(rand.NewPCG(9, uint64(count)))
		w := vecMake(count, 1, 300, func() float64 {
			if rng.IntN(count+1) > 0 {
				return gone
			}
			return vecEdges[1+rng.IntN(len(vecEdges)-1)]
		})
		w.table(t, db, "m")
		vecCompare(t, w.eval(t, "absent(m)", vecStart, vecStep, 300), vecLists(t, db, "SELECT '', prom_absent(v, 'n=300') FROM m"), 0, "absent")
		vecCompare(t, w.eval(t, "vector(scalar(m))", vecStart, vecStep, 300), vecLists(t, db, "SELECT '', prom_scalar(v, 'n=300') FROM m"), 0, "scalar")
		none := vecLists(t, db, "SELECT 'absent', prom_absent(v, 'n=300') FROM m WHERE i > 1000000 UNION ALL SELECT 'scalar', prom_scalar(v, 'n=300') FROM m WHERE i > 1000000")
		require.Equal(t, []float64{1}, none["absent"])
		require.Len(t, none["scalar"], 1)
		require.True(t, vecSame(math.NaN(), none["scalar"][0], 0))
	}
}

// TestAggregatesOfNothing: NULL lists count as no series, and lists of one element as constants.
func TestAggregatesOfNothing(t *testing.T) {
	db := openVec(t, 1)
	calls := map[string]string{"quantile": "prom_quantile(1::UINTEGER, v, 'phi=0.5')"}
	for _, op := range append(ordered, unordered...) {
		calls[op] = "prom_" + op + "(v)"
	}
	for op, call := range calls {
		require.Empty(t, vecLists(t, db, "SELECT '', "+call+" FROM (SELECT NULL::DOUBLE[] AS v) WHERE false"), op)
		require.Empty(t, vecLists(t, db, "SELECT '', "+call+" FROM (VALUES (NULL::DOUBLE[]), ([])) t(v)"), op)
		require.Empty(t, vecLists(t, db, "SELECT '', "+call+" FROM (SELECT prom_unpack(unhex('020000000000F07F')) AS v FROM range(3))"), op)
		require.ErrorContains(t, vecError(t, db, "SELECT "+call+" FROM (VALUES ([1.0::DOUBLE, 2]), ([1.0::DOUBLE, 2, 3])) t(v)"), "lists of", op)
	}
	const mixed = " FROM (VALUES (1, [1.0::DOUBLE]), (2, NULL), (3, [10.0::DOUBLE, 20]), (4, [5.0::DOUBLE])) t(i, v)"
	for call, want := range map[string][]float64{
		"prom_sum(v)": {16, 26}, "prom_avg(v)": {16.0 / 3, 26.0 / 3}, "prom_min(v)": {1, 1}, "prom_max(v)": {10, 20}, "prom_count(v)": {3, 3}, "prom_group(v)": {1, 1},
		"prom_quantile(i::UINTEGER, v, 'phi=0.5')": {5, 5}, "prom_scalar(v, 'n=2')": {math.NaN(), math.NaN()},
	} {
		vecCompare(t, map[string][]float64{"": want}, vecLists(t, db, "SELECT '', "+call+mixed), 1e-15, call)
	}
	// Every order of the three: states widen at their first list, at a later one, and when they are
	// merged.
	permute(3, func(p []int) {
		rows := []string{"[1.0::DOUBLE]", "[10.0::DOUBLE, 20]", "[5.0::DOUBLE]"}
		sql := fmt.Sprintf("SELECT '', prom_sum(v) FROM (VALUES (%s), (%s), (%s)) t(v)", rows[p[0]], rows[p[1]], rows[p[2]])
		require.Equal(t, []float64{16, 26}, vecLists(t, db, sql)[""], sql)
	})
}
