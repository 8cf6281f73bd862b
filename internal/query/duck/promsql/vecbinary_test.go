package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var vecArithmetic = []string{"+", "-", "*", "/", "%", "^", "atan2"}
var vecComparisons = []string{"==", "!=", ">", "<", ">=", "<="}

// pairsWorld has two series in which every edge meets every other, and random values.
func pairsWorld(rng *rand.Rand) vecWorld {
	n := len(vecEdges) * len(vecEdges)
	w := vecMake(2, 1, n+500, func() float64 { return vecRandom(rng) })
	for k := range n {
		w[0].v[k], w[1].v[k] = vecEdges[k%len(vecEdges)], vecEdges[k/len(vecEdges)]
	}
	w[0].name, w[1].name = "l", "r"
	w[1].id = w[0].id
	return w
}

func TestBinaryOperators(t *testing.T) {
	db := openVec(t, 2)
	w := pairsWorld(rand.New(rand.NewPCG(4, 4)))
	w.table(t, db, "m")
	vecExec(t, db, "CREATE OR REPLACE TABLE p AS SELECT l.id, l.v AS l, r.v AS r FROM m l JOIN m r USING (id) WHERE l.name = 'l' AND r.name = 'r'")
	check := func(query, op, l, r string) {
		t.Helper()
		got := vecLists(t, db, fmt.Sprintf("SELECT id, prom_binary('%s', %s, %s) FROM p", op, l, r))
		vecCompare(t, w.eval(t, query, vecStart, vecStep, w.steps()), got, 0, query)
	}
	scalars := []string{"0", "-0.0", "1", "2", "-3", "0.5", "NaN", "Inf", "-Inf"}
	for _, op := range vecArithmetic {
		check("l "+op+" on (id) r", op, "l", "r")
		for _, s := range scalars {
			check("l "+op+" "+s, op, "l", "['"+s+"'::DOUBLE]")
			check("("+s+") "+op+" l", op, "['"+s+"'::DOUBLE]", "l")
		}
	}
	for _, op := range vecComparisons {
		check("l "+op+" on (id) r", op, "l", "r")
		check("l "+op+" bool on (id) r", "bool"+op, "l", "r")
		check("r "+op+" on (id) l", op, "r", "l")
		for _, s := range scalars {
			check("l "+op+" "+s, op, "l", "['"+s+"'::DOUBLE]")
			check("l "+op+" bool "+s, "bool"+op, "l", "['"+s+"'::DOUBLE]")
			check(s+" "+op+" l", "r"+op, "['"+s+"'::DOUBLE]", "l")
			check(s+" "+op+" bool l", "bool"+op, "['"+s+"'::DOUBLE]", "l")
		}
	}
	for _, op := range []string{"and", "unless"} {
		check("l "+op+" on (id) r", op, "l", "r")
		check("r "+op+" on (id) l", op, "r", "l")
		check("l "+op+" on () vector(3)", op, "l", "[3.0::DOUBLE]")
	}
	check("label_replace(l, '__name__', 'x', '', '') or label_replace(r, '__name__', 'x', '', '')", "or", "l", "r")
	check("max by (id) (r) or max by (id) (l)", "or", "r", "l")
}

func TestBinaryNullsAndErrors(t *testing.T) {
	db := openVec(t, 1)
	sql := func(op, l, r string) string { return fmt.Sprintf("SELECT 'x', prom_binary('%s', %s, %s)", op, l, r) }
	two, null, one := "[1.0::DOUBLE, 2.0]", "NULL::DOUBLE[]", "[5.0::DOUBLE]"
	for _, c := range []struct {
		op, l, r string
		want     []float64
	}{
		{"+", two, null, nil}, {"+", null, two, nil}, {"+", null, null, nil}, {"+", two, one, []float64{6, 7}}, {"-", one, two, []float64{4, 3}},
		{"+", one, one, []float64{10}},
		{"and", two, null, nil}, {"and", null, two, nil}, {"and", two, one, []float64{1, 2}}, {"and", one, two, []float64{5, 5}},
		{"unless", two, null, []float64{1, 2}}, {"unless", null, two, nil}, {"unless", two, one, nil},
		{"or", two, null, []float64{1, 2}}, {"or", null, two, []float64{1, 2}}, {"or", null, null, nil}, {"or", one, two, []float64{5, 5}},
		{">", two, one, nil}, {"bool>", two, one, []float64{0, 0}}, {"r<", one, two, nil}, {"r>", one, two, []float64{1, 2}},
	} {
		got := vecLists(t, db, sql(c.op, c.l, c.r))["x"]
		require.Equal(t, c.want, got, "%s %s %s", c.l, c.op, c.r)
	}
	for _, op := range []string{"", "=", "bool", "bool and", "r+", "AND", strings.Repeat("x", 300)} {
		require.ErrorContains(t, vecError(t, db, fmt.Sprintf("SELECT prom_binary('%s', %s, %s)", op, two, two)), "find operator: there is no \"")
	}
	require.ErrorContains(t, vecError(t, db, "SELECT prom_binary('+', [1.0::DOUBLE, 2, 3], [1.0::DOUBLE, 2])"), "lists of 3 and 2 values")
}

// TestSquares has lists whose squares are all normal numbers, which C calculates, and lists with
// others.
func TestSquares(t *testing.T) {
	db := openVec(t, 1)
	rng := rand.New(rand.NewPCG(15, 15))
	w := vecMake(400, 1, 20, func() float64 {
		if rng.IntN(5) == 0 {
			return gone
		}
		return math.Ldexp(rng.NormFloat64(), rng.IntN(1021)-510)
	})
	for i := range 40 {
		w[i].v[7] = vecRandom(rng)
	}
	w.table(t, db, "m")
	vecCompare(t, w.eval(t, "m ^ 2", vecStart, vecStep, 20), vecLists(t, db, "SELECT id, prom_binary('^', v, [2.0::DOUBLE]) FROM m"), 0, "squares")
}

// TestManyRows runs the scalar functions over more rows than a chunk has, with NULLs and constants
// between them.
func TestManyRows(t *testing.T) {
	db := openVec(t, 2)
	got := vecLists(t, db, `SELECT i::VARCHAR, prom_binary('+', prom_math('sqrt', v, NULL, NULL), CASE WHEN i % 3 = 0 THEN [1.0::DOUBLE] ELSE [i::DOUBLE, 2, 3] END)
		FROM (SELECT i, CASE WHEN i % 5 > 0 THEN [(i * i)::DOUBLE, 4, 9] END AS v FROM range(10000) t(i))`)
	require.Len(t, got, 8000)
	for i := range 10000 {
		list := got[fmt.Sprint(i)]
		switch x := float64(i); {
		case i%5 == 0:
			require.Nil(t, list)
		case i%3 == 0:
			require.Equal(t, []float64{x + 1, 3, 4}, list)
		default:
			require.Equal(t, []float64{x + x, 4, 6}, list)
		}
	}
}
