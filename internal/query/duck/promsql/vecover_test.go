package promsql_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	got = vecLists(t, db, "SELECT id, prom_timestamps(v, "+spec+") FROM m")
	vecCompare(t, w.eval(t, "timestamp(-m)", vecStart, vecStep, 50), got, 0, "timestamps")
	require.Equal(t, []float64{1, 1.5}, vecLists(t, db, "SELECT '', prom_timestamps([0.0::DOUBLE], 'start=1000 step=500 n=2')")[""])
	require.ErrorContains(t, vecError(t, db, "SELECT prom_time('n=3')"), "key start is missing")
	require.ErrorContains(t, vecError(t, db, "SELECT prom_time('start=0 step=1 n=3 color=4')"), `unknown key "color"`)
}

func TestOrdinals(t *testing.T) {
	db := openVec(t, 2)
	rng := rand.New(rand.NewPCG(13, 13))
	keys := []uint64{0, 1, math.MaxUint64, 1 << 63}
	for range 3000 {
		keys = append(keys, rng.Uint64()&^1)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var pick, at []byte
	for i, k := range keys {
		pick = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(pick, k), uint32(i*3))
		at = binary.LittleEndian.AppendUint32(at, uint32(i)^1)
	}
	binary.LittleEndian.PutUint32(at[4*10:], math.MaxUint32)
	seen := 0
	sql := `SELECT k::VARCHAR, [prom_pick(k, $1)::DOUBLE, prom_pick(k + 1, $1)::DOUBLE] FROM (SELECT unnest([` + fmt.Sprint(keys[0])
	for _, k := range keys[1 : len(keys)-1] {
		sql += "," + fmt.Sprint(k)
	}
	sql += `]::UBIGINT[]) AS k)`
	err := db.Each(t.Context(), sql, [][]byte{pick}, []string{duck.Varchar, duck.Doubles}, func(n int, c []duck.Vector) error {
		lists, elems := c[1].List()
		for i := range n {
			k := slices.IndexFunc(keys, func(k uint64) bool { return fmt.Sprint(k) == c[0].Strings()[i].String() })
			require.Equal(t, float64(3*k), elems.Float64s()[lists[i].Offset])
			require.Equal(t, k == 0 || k == len(keys)-2 && keys[k]+1 == keys[k+1], elems.Valid(int(lists[i].Offset)+1), "key %d", keys[k])
			seen++
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, len(keys)-1, seen)
	err = db.Each(t.Context(), "SELECT i::UBIGINT, coalesce(prom_at(i::UINTEGER, $1), 7777777)::UBIGINT FROM range(5000) t(i)", [][]byte{at}, []string{duck.UBigInt, duck.UBigInt}, func(n int, c []duck.Vector) error {
		for i, x := range c[0].Uint64s() {
			want := x ^ 1
			if x == 10 || x >= uint64(len(keys)) {
				want = 7777777
			}
			require.Equal(t, want, c[1].Uint64s()[i])
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, map[string][]float64{"": {1}}, vecLists(t, db, `SELECT '', [1.0::DOUBLE] WHERE prom_pick(5::UBIGINT, ''::BLOB) IS NULL AND prom_pick(NULL, ''::BLOB) IS NULL
		AND prom_pick(5::UBIGINT, NULL) IS NULL AND prom_at(0::UINTEGER, ''::BLOB) IS NULL AND prom_at(NULL, ''::BLOB) IS NULL`))
	require.ErrorContains(t, vecError(t, db, `SELECT [prom_pick(5::UBIGINT, '\x01'::BLOB)::DOUBLE]`), "its last entry is cut off")
	require.ErrorContains(t, vecError(t, db, `SELECT [prom_at(5::UINTEGER, '\x01'::BLOB)::DOUBLE]`), "its last entry is cut off")
}
