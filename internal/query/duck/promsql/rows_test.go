package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

func publish(t testing.TB, i []uint32, v [][]float64) *promsql.Published {
	p := promsql.Publish(i, v)
	t.Cleanup(p.Close)
	return p
}

// table is the table function's call.
func table(p *promsql.Published) string { return fmt.Sprintf("prom_rows(%d)", p.ID()) }

// randomRows makes n rows with ordinals n-1..0; some lists are a multiple of steps, some have one
// value, some none.
func randomRows(rng *rand.Rand, n, steps int) (i []uint32, v [][]float64) {
	slab := make([]float64, n*steps)
	for k := range slab {
		slab[k] = math.Float64frombits(rng.Uint64())
	}
	for row := range n {
		length := []int{steps, steps, steps, min(steps, 1), 0}[rng.IntN(5)]
		i, v = append(i, uint32(n-1-row)), append(v, slab[row*steps:row*steps+length])
	}
	return i, v
}

// readRows reads the columns i and v of a statement: lists by ordinal, NULL for one that is.
func readRows(t testing.TB, db *duck.DB, sql string) map[uint32][]float64 {
	t.Helper()
	out := map[uint32][]float64{}
	err := db.Each(t.Context(), sql, nil, []string{duck.UInteger, duck.Doubles}, func(n int, c []duck.Vector) error {
		entries, elems := c[1].List()
		for k, i := range c[0].Uint32s() {
			_, twice := out[i]
			require.False(t, twice, "ordinal %d twice: %s", i, sql)
			out[i] = nil
			if c[1].Valid(k) {
				e := entries[k]
				out[i] = append([]float64{}, elems.Float64s()[e.Offset:e.Offset+e.Length]...)
			}
		}
		return nil
	})
	require.NoError(t, err, sql)
	return out
}

func TestPublishedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, threads := range []int{1, 4} {
		db := openRange(t, threads)
		for _, c := range []struct{ rows, steps int }{
			{0, 1}, {1, 1}, {1, 480}, {10, 0}, {2047, 3}, {2048, 3}, {2049, 3}, {5000, 1}, {10_000, 100}, {1000, 1000}, {5, 32_768}, {5, 32_769}, {3, 300_000},
		} {
			t.Run(fmt.Sprintf("threads=%d/rows=%d/steps=%d", threads, c.rows, c.steps), func(t *testing.T) {
				i, v := randomRows(rng, c.rows, c.steps)
				p := publish(t, i, v)
				got := readRows(t, db, "SELECT i, v FROM "+table(p))
				require.Len(t, got, c.rows)
				for row, list := range v {
					require.Equal(t, len(list) == 0, got[i[row]] == nil)
					require.True(t, slices.Equal(bitsOf(list), bitsOf(got[i[row]])), "row %d", row)
				}
			})
		}
	}
}

// number runs a statement that returns one BIGINT.
func number(t testing.TB, db *duck.DB, sql string) (x int64) {
	t.Helper()
	rows := 0
	require.NoError(t, db.Each(t.Context(), sql, nil, []string{duck.BigInt}, func(n int, c []duck.Vector) error {
		rows, x = rows+n, c[0].Int64s()[0]
		return nil
	}), sql)
	require.Equal(t, 1, rows, sql)
	return x
}

// TestPublishedColumns: any choice of columns in any order, and none at all.
func TestPublishedColumns(t *testing.T) {
	db := openRange(t, 2)
	i, v := randomRows(rand.New(rand.NewPCG(6, 6)), 3000, 50)
	p := publish(t, i, v)
	var values, without, ones int64
	for _, list := range v {
		values += int64(len(list))
		if len(list) == 0 {
			without++
		}
		if len(list) == 1 {
			ones++
		}
	}
	for sql, want := range map[string]int64{
		"SELECT count(*) FROM %s":                                                   3000,
		"SELECT sum(i)::BIGINT FROM %s":                                             3000 * 2999 / 2,
		"SELECT sum(len(v))::BIGINT FROM %s":                                        values,
		"SELECT count(*) FROM %s WHERE v IS NULL":                                   without,
		"SELECT count(*) FROM (SELECT v, i FROM %s) WHERE i < 100":                  100,
		"SELECT count(i) FROM %s WHERE len(v) = 1":                                  ones,
		"SELECT count(*) FROM (SELECT i FROM %s LIMIT 10)":                          10,
		"WITH a AS (SELECT * FROM %[1]s) SELECT count(*) FROM a JOIN a b USING (i)": 3000,
		"WITH a AS MATERIALIZED (SELECT * FROM %[1]s) SELECT count(*) FROM a, (SELECT max(i) AS m FROM a) WHERE a.i = m":       1,
		"WITH a AS NOT MATERIALIZED (SELECT * FROM %[1]s) SELECT count(*) FROM a WHERE i IN (SELECT i + 1 FROM a WHERE i < 9)": 9,
	} {
		require.Equal(t, want, number(t, db, fmt.Sprintf(sql, table(p))), sql)
	}
}

// TestPublishedCardinality: the optimizer knows how many rows there are.
func TestPublishedCardinality(t *testing.T) {
	db := openRange(t, 2)
	i, v := randomRows(rand.New(rand.NewPCG(7, 7)), 12_345, 1)
	p := publish(t, i, v)
	plan := ""
	require.NoError(t, db.Each(t.Context(), "EXPLAIN SELECT i FROM "+table(p), nil, []string{duck.Varchar, duck.Varchar}, func(n int, c []duck.Vector) error {
		for k := range n {
			plan += c[1].Strings()[k].String()
		}
		return nil
	}))
	require.Regexp(t, "12,?345", plan)
}

// TestPublishedInFunctions: sums and joins of published rows are those of the same lists.
func TestPublishedInFunctions(t *testing.T) {
	db := openRange(t, 4)
	const rows, steps = 3000, 40
	var i []uint32
	var v, constant [][]float64
	total, scaled := make([]float64, steps), map[uint32][]float64{}
	for row := range uint32(rows) {
		list := make([]float64, steps)
		for k := range list {
			list[k] = float64(int(row)*7%100 + k)
			total[k] += list[k]
		}
		i, v = append(i, row), append(v, list)
		constant = append(constant, []float64{float64(row % 3)})
		if row%500 == 0 {
			for _, x := range list {
				scaled[row] = append(scaled[row], x*float64(row%3))
			}
		}
	}
	a, b := publish(t, i, v), publish(t, i, constant)
	sum := readRows(t, db, "SELECT 0::UINTEGER, prom_sum(v) FROM "+table(a))
	require.Equal(t, map[uint32][]float64{0: total}, sum)
	got := readRows(t, db, "SELECT i, prom_binary('*', a.v, b.v) FROM "+table(a)+" a JOIN "+table(b)+" b USING (i) WHERE i % 500 = 0")
	require.Equal(t, scaled, got)
}

func TestPublishedNotThere(t *testing.T) {
	db := openRange(t, 2)
	read := func(id string) error {
		return db.Each(t.Context(), "SELECT i FROM prom_rows("+id+")", nil, []string{duck.UInteger}, func(int, []duck.Vector) error { return nil })
	}
	p := publish(t, []uint32{1}, [][]float64{{1}})
	q := publish(t, []uint32{1}, [][]float64{{1}})
	require.NotEqual(t, p.ID(), q.ID())
	require.NoError(t, read(fmt.Sprint(p.ID())))
	p.Close()
	p.Close()
	require.ErrorContains(t, read(fmt.Sprint(p.ID())), fmt.Sprintf("rows %d are not there", p.ID()))
	require.NoError(t, read(fmt.Sprint(q.ID())))
	require.ErrorContains(t, read("-7"), "rows -7 are not there")
	require.ErrorContains(t, read("0"), "rows 0 are not there")
	require.ErrorContains(t, read("NULL"), "rows 0 are not there")
	require.PanicsWithValue(t, "promsql: 1 ordinals for 0 lists", func() { promsql.Publish([]uint32{1}, nil) })
}

// TestCloseDuringScan: rows that are closed while a statement reads them fail it, and are not read
// any more.
func TestCloseDuringScan(t *testing.T) {
	require.ErrorContains(t, closeDuringScan(t, 1), "are not there")
	require.Error(t, closeDuringScan(t, 2)) // the error of one thread interrupts the other, and DuckDB reports either
}

func closeDuringScan(t *testing.T, threads int) error {
	db := openRange(t, threads)
	list := make([]float64, 1<<16)
	i, v := make([]uint32, 400), make([][]float64, 400)
	for row := range v {
		v[row] = list
	}
	p := publish(t, i, v)
	rows, err := db.Query(t.Context(), "SELECT i, v FROM "+table(p), nil, duck.UInteger, duck.Doubles)
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Next())
	p.Close()
	list[0] = 1 // whoever reads it now races with this
	for rows.Next() {
	}
	return rows.Err()
}

// TestManyScans: threads publish, scan and close at once, some while others' statements run.
func TestManyScans(t *testing.T) {
	db := openRange(t, 4)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 30 {
				i, v := randomRows(rng, 1+rng.IntN(5000), 20)
				p := promsql.Publish(i, v)
				early := rng.IntN(3) == 0
				if early {
					wg.Go(p.Close)
				}
				rows := 0
				err := db.Each(t.Context(), "SELECT i, v FROM "+table(p), nil, []string{duck.UInteger, duck.Doubles}, func(n int, _ []duck.Vector) error { rows += n; return nil })
				p.Close()
				if err != nil || rows != len(i) {
					if !early || err == nil {
						t.Errorf("read %d of %d rows: %v", rows, len(i), err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkPublished sums 10k lists of 480 values that lie in Go's memory, beside publishing and
// mere reading.
func BenchmarkPublished(b *testing.B) {
	const rows, steps = 10_000, 480
	i, v := make([]uint32, rows), make([][]float64, rows)
	for row := range v {
		i[row], v[row] = uint32(row), make([]float64, steps)
		for k := range v[row] {
			v[row][k] = float64(row*k%97) + 0.5
		}
	}
	slab, cut := make([]float64, rows*steps), make([][]float64, rows)
	for row := range cut {
		cut[row] = slab[row*steps : (row+1)*steps]
	}
	for name, lists := range map[string][][]float64{"own": v, "one": cut} {
		b.Run("fn=publish/slabs="+name, func(b *testing.B) {
			for b.Loop() {
				promsql.Publish(i, lists).Close()
			}
		})
	}
	for _, threads := range []int{1, 2} {
		db := openRange(b, threads)
		p := publish(b, i, v)
		for _, c := range []struct{ name, sql string }{
			{"count", "SELECT count(*) FROM %s"},
			{"read", "SELECT count(v) FROM %s"},
			{"sum/groups=1", "SELECT count(x) FROM (SELECT prom_sum(v) AS x FROM %s)"},
			{"sum/groups=100", "SELECT count(x) FROM (SELECT i %% 100, prom_sum(v) AS x FROM %s GROUP BY 1)"},
		} {
			b.Run(fmt.Sprintf("fn=%s/threads=%d", c.name, threads), func(b *testing.B) {
				before := cpu(b)
				for b.Loop() {
					number(b, db, fmt.Sprintf(c.sql, table(p)))
				}
				b.ReportMetric((cpu(b)-before)*1e3/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
