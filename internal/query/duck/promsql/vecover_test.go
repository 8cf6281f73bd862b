package promsql_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
)

// TestOver compares range functions over subqueries, whose inner grid is the world's.
func TestOver(t *testing.T) {
	db := openVec(t, 2)
	rng := rand.New(rand.NewPCG(12, 12))
	const inner = 200
	w := vecMake(25, 1, inner, func() float64 {
		if rng.IntN(5) == 0 {
			return gone
		}
		return float64(rng.IntN(50))
	})
	for k := range inner {
		w[3].v[k] = gone
		w[4].v[k] = vecRandom(rng)
	}
	w.table(t, db, "m")
	start, step, n := vecStart+37*vecStep+1000, int64(150_000), 50
	for _, c := range []struct{ fn, query, spec string }{
		{"rate", "rate(%s)", ""}, {"increase", "increase(%s)", ""}, {"delta", "delta(%s)", ""}, {"changes", "changes(%s)", ""}, {"sum_over_time", "sum_over_time(%s)", ""},
		{"max_over_time", "max_over_time(%s)", ""}, {"count_over_time", "count_over_time(%s)", ""}, {"stddev_over_time", "stddev_over_time(%s)", ""},
		{"last_over_time", "last_over_time(%s)", ""}, {"quantile_over_time", "quantile_over_time(0.3, %s)", " phi=0.3"}, {"deriv", "deriv(%s)", ""},
		{"present_over_time", "present_over_time(%s)", ""},
	} {
		query := fmt.Sprintf(c.query, "m[10m:1m]")
		want := w.eval(t, query, start, step, n)
		sql := fmt.Sprintf("SELECT id, prom_over('%s', v, 'start=%d step=%d n=%d', 'start=%d step=%d n=%d range=600000%s') FROM m",
			c.fn, vecStart, vecStep, inner, start, step, n, c.spec)
		vecCompare(t, want, vecLists(t, db, sql), 0, query)
	}
	require.Equal(t, map[string][]float64{"": {3}},
		vecLists(t, db, "SELECT '', prom_over('count_over_time', [7.0::DOUBLE], 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30')"), "a constant")
	require.Empty(t, vecLists(t, db, "SELECT '', prom_over('rate', NULL, 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30')"))
	require.Empty(t, vecLists(t, db, "SELECT '', prom_over('rate', [1.0::DOUBLE], 'start=0 step=10 n=5', 'start=300 step=10 n=1 range=30')"))
	for sql, message := range map[string]string{
		"prom_over('absent', [1.0::DOUBLE], 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30')":              `find range function: there is no "absent"`,
		"prom_over('rate', [1.0::DOUBLE, 2], 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30')":             "a list of 2 values on a grid of 5 steps",
		"prom_over('rate', [1.0::DOUBLE], 'start=0 step=10', 'start=30 step=10 n=1 range=30')":                    "key n is missing",
		"prom_over('rate', [1.0::DOUBLE], 'start=0 step=10 n=5', 'start=30 step=10 n=1')":                         "key range is missing",
		"prom_over('rate', [1.0::DOUBLE], NULL, 'start=30 step=10 n=1 range=30')":                                 "it is NULL",
		"prom_over('quantile_over_time', [1.0::DOUBLE], 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30')":  "key phi is missing",
		"prom_over('rate', [1.0::DOUBLE], 'start=0 step=10 n=5', 'start=30 step=10 n=1 range=30 budget=4000000')": "budget",
	} {
		require.ErrorContains(t, vecError(t, db, "SELECT "+sql), message, sql)
	}
}

func TestTimes(t *testing.T) {
	db := openVec(t, 1)
	w := vecMake(2, 1, 50, func() float64 { return 1 })
	w[0].v[3], w[1].v[7] = gone, math.NaN()
	w.table(t, db, "m")
	spec := fmt.Sprintf("'start=%d step=%d n=%d'", vecStart+1, vecStep, 50)
	got := vecLists(t, db, "SELECT '', prom_time("+spec+")")
	vecCompare(t, w.eval(t, "vector(time())", vecStart+1, vecStep, 50), got, 0, "time")
	spec = fmt.Sprintf("'start=%d step=%d n=%d'", vecStart, vecStep, 50)
	got = vecLists(t, db, "SELECT id, prom_binary('and', prom_time("+spec+"), v) FROM m")
	vecCompare(t, w.eval(t, "timestamp(-m)", vecStart, vecStep, 50), got, 0, "timestamps")
	require.Equal(t, []float64{1, 1.5}, vecLists(t, db, "SELECT '', prom_binary('and', prom_time('start=1000 step=500 n=2'), [0.0::DOUBLE])")[""])
	require.ErrorContains(t, vecError(t, db, "SELECT prom_time('n=3')"), "key start is missing")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_time('start=0 step=1 n=3 color=4')"), `unknown key "color"`)
}

func TestOrdinals(t *testing.T) {
	db := openVec(t, 2)
	const size = 3000
	var at []byte
	for i := range uint32(size) {
		at = binary.LittleEndian.AppendUint32(at, i^1)
	}
	binary.LittleEndian.PutUint32(at[4*10:], math.MaxUint32)
	err := db.Each(t.Context(), "SELECT i::UBIGINT, coalesce(prom_at(i::UINTEGER, $1), 7777777)::UBIGINT FROM range(5000) t(i)", [][]byte{at}, []string{duck.UBigInt, duck.UBigInt}, func(n int, c []duck.Vector) error {
		for i, x := range c[0].Uint64s() {
			want := x ^ 1
			if x == 10 || x >= size {
				want = 7777777
			}
			require.Equal(t, want, c[1].Uint64s()[i])
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, map[string][]float64{"": {1}}, vecLists(t, db, `SELECT '', [1.0::DOUBLE] WHERE prom_at(0::UINTEGER, ''::BLOB) IS NULL AND prom_at(NULL, ''::BLOB) IS NULL
		AND prom_at(0::UINTEGER, NULL) IS NULL`))
	require.ErrorContains(t, vecError(t, db, `SELECT [prom_at(5::UINTEGER, '\x01'::BLOB)::DOUBLE]`), "its last entry is cut off")
}
