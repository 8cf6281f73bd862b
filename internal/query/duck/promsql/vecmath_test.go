package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// edgesWorld has one series of all edges and random values, and one that lacks every value.
func edgesWorld(rng *rand.Rand) vecWorld {
	w := vecMake(2, 1, len(vecEdges)+400, func() float64 { return vecRandom(rng) })
	copy(w[0].v, vecEdges)
	for k := range w[1].v {
		w[1].v[k] = gone
	}
	return w
}

func TestMathFunctions(t *testing.T) {
	db := openVec(t, 2)
	w := edgesWorld(rand.New(rand.NewPCG(1, 1)))
	w.table(t, db, "m")
	type call struct{ query, fn, a, b string }
	calls := []call{
		{"round(m)", "round", "[1.0]", "NULL"},
		{"-m", "neg", "NULL", "NULL"},
	}
	for _, fn := range []string{
		"abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "sgn", "deg", "rad", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
		"asinh", "acosh", "atanh", "minute", "hour", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "month", "year",
	} {
		calls = append(calls, call{fn + "(m)", fn, "NULL", "NULL"})
	}
	for _, a := range []string{"0", "1", "-0.0", "0.1", "5", "-3", "1e-300", "1e300", "Inf", "-Inf", "NaN"} {
		list := "['" + a + "'::DOUBLE]"
		for _, fn := range []string{"round", "clamp_min", "clamp_max"} {
			calls = append(calls, call{fmt.Sprintf("%s(m, %s)", fn, a), fn, list, "NULL"})
		}
		for _, b := range []string{"0", "-0.0", "2", "-5", "Inf", "-Inf", "NaN"} {
			calls = append(calls, call{fmt.Sprintf("clamp(m, %s, %s)", a, b), "clamp", list, "['" + b + "'::DOUBLE]"})
		}
	}
	for _, c := range calls {
		got := vecLists(t, db, fmt.Sprintf("SELECT id, prom_math('%s', v, %s, %s) FROM m", c.fn, c.a, c.b))
		vecCompare(t, w.eval(t, c.query, vecStart, vecStep, w.steps()), got, 0, c.query)
	}
}

// TestMathParameterPerStep lets the parameters vary, which scalar() of a series does.
func TestMathParameterPerStep(t *testing.T) {
	db := openVec(t, 2)
	rng := rand.New(rand.NewPCG(2, 2))
	w := vecMake(3, 1, 900, func() float64 { return vecRandom(rng) })
	w[1].name, w[2].name = "a", "b"
	w.table(t, db, "m")
	// A subquery in an expression would not do: DuckDB passes its list through a sort key, which
	// knows neither -0 nor absent values.
	vecExec(t, db, `CREATE OR REPLACE TABLE p AS SELECT * FROM (SELECT id, v FROM m WHERE name = 'm'),
		(SELECT prom_scalar(v, 'n=900') AS a FROM m WHERE name = 'a'), (SELECT prom_scalar(v, 'n=900') AS b FROM m WHERE name = 'b')`)
	for fn, query := range map[string]string{
		"round": "round(m, scalar(a))", "clamp_min": "clamp_min(m, scalar(a))", "clamp_max": "clamp_max(m, scalar(a))", "clamp": "clamp(m, scalar(a), scalar(b))",
	} {
		got := vecLists(t, db, "SELECT id, prom_math('"+fn+"', v, a, b) FROM p")
		vecCompare(t, w.eval(t, query, vecStart, vecStep, w.steps()), got, 0, query)
		// A value for all steps under parameters that vary.
		got = vecLists(t, db, "SELECT '', prom_math('"+fn+"', [7.5::DOUBLE], a, b) FROM p")
		constant := "vector(7.5)"
		vecCompare(t, w.eval(t, fn+"("+constant+query[len(fn)+2:], vecStart, vecStep, w.steps()), got, 0, fn+" of a constant")
	}
}

// TestNoResultLooksAbsent has a NaN which would be the absent value if its sign were changed.
func TestNoResultLooksAbsent(t *testing.T) {
	db := openVec(t, 1)
	vecMake(1, 1, 2, func() float64 { return math.Float64frombits(0xfff0000000000002) }).table(t, db, "m")
	for _, expr := range []string{
		"prom_math('neg', v, NULL, NULL)", "prom_math('abs', v, NULL, NULL)", "prom_math('exp', v, NULL, NULL)", "prom_binary('-', [0.0::DOUBLE], v)",
		"prom_binary('*', v, [-1.0::DOUBLE])", "prom_binary('^', v, [-1.0::DOUBLE])", "prom_binary('%', v, [-1.0::DOUBLE])",
	} {
		vecCompare(t, map[string][]float64{"0": {math.NaN(), math.NaN()}}, vecLists(t, db, "SELECT id, "+expr+" FROM m"), 0, expr)
	}
}

func TestDatesOfAnyTime(t *testing.T) {
	db := openVec(t, 2)
	rng := rand.New(rand.NewPCG(3, 3))
	w := vecMake(1, 1, 4000, func() float64 {
		switch rng.IntN(3) {
		case 0:
			return math.Trunc((rng.Float64() - 0.3) * 1e10)
		case 1:
			return float64(time.Date(1600+rng.IntN(800), time.Month(1+rng.IntN(12)), 1+rng.IntN(31), 0, 0, rng.IntN(3)-1, 0, time.UTC).Unix())
		default:
			return float64(rng.Uint64()) * (rng.Float64()*2 - 1)
		}
	})
	w.table(t, db, "m")
	for _, fn := range []string{"minute", "hour", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "month", "year"} {
		got := vecLists(t, db, "SELECT id, prom_math('"+fn+"', v, NULL, NULL) FROM m")
		vecCompare(t, w.eval(t, fn+"(m)", vecStart, vecStep, w.steps()), got, 0, fn)
	}
}

func TestMathNulls(t *testing.T) {
	db := openVec(t, 1)
	got := vecLists(t, db, `SELECT k, l FROM (VALUES
		('null', prom_math('abs', NULL::DOUBLE[], NULL, NULL)),
		('empty', prom_math('abs', []::DOUBLE[], NULL, NULL)),
		('no parameter', prom_math('round', [1.0::DOUBLE], NULL, NULL)),
		('one', prom_math('abs', [-1.0::DOUBLE], NULL, NULL)),
		('exp', prom_math('exp', [0.0::DOUBLE], NULL, NULL)),
		('min above max', prom_math('clamp', [1.0::DOUBLE, 2.0], [5.0], [4.0]))) AS t(k, l)`)
	require.Equal(t, map[string][]float64{"one": {1}, "exp": {1}}, got)
	require.ErrorContains(t, vecError(t, db, "SELECT prom_math('fabs', [1.0::DOUBLE], NULL, NULL)"), `find function: there is no "fabs"`)
	require.ErrorContains(t, vecError(t, db, "SELECT prom_math(NULL, [1.0::DOUBLE], NULL, NULL)"), "find function: its name is NULL")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_math(f, [1.0::DOUBLE], NULL, NULL) FROM (VALUES ('abs'), ('neg')) t(f)"), "not the same in all rows")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_math('round', [1.0::DOUBLE, 2, 3], [1.0::DOUBLE, 2], NULL)"), "lists of 3 and 2 values")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_math('abs', [1.0::DOUBLE, NULL], NULL, NULL)"), "a list has a NULL element")
}
