package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

func newKernel(t testing.TB, function, spec string) *promsql.Kernel {
	t.Helper()
	k, err := promsql.NewKernel(function, spec)
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

// columns splits samples into times and values, without stale markers unless they are wanted.
func columns(series []sample, withStale bool) (ts []int64, v []float64) {
	for _, s := range series {
		if withStale || math.Float64bits(s.v) != math.Float64bits(stale) {
			ts, v = append(ts, s.ms), append(v, s.v)
		}
	}
	return ts, v
}

// TestKernelEqualsAggregate compares every function with its SQL aggregate, bit for bit: with the
// stale markers that the kernel drops, and where it does not look at them also without.
func TestKernelEqualsAggregate(t *testing.T) {
	const t0 = 1_700_000_000_000
	db := openRange(t, 2)
	rng := rand.New(rand.NewPCG(11, 7))
	w := newWorld(rng, t0, 300)
	onlyStale := []sample{{1, t0 + 700_000, stale}, {1, t0 + 800_000, stale}}
	w.series = append(w.series, onlyStale, []sample{{1, t0 + 10_000_000, 1}})
	scan := w.rows(t, db, rng, true)
	for _, win := range []window{
		{grid: grid{t0 + 600_000, 60_000, 50}, rangeMS: 300_000},
		{grid: grid{t0 - 100_001, 17_001, 200}, rangeMS: 1_800_000, shift: -50_000},
		{grid: grid{t0 + 60_000, 600_000, 8}, rangeMS: 100_000},
		{grid: grid{t0 + 4_000_000, 1, 1}, rangeMS: 3_600_000},
		// Windows like the one before: of 10 samples, 1 apart; of 22, of 240 and of 2, 4 apart; and of
		// 4, 8 apart.
		{grid: grid{t0 - 7, 15_000, 250}, rangeMS: 150_000},
		{grid: grid{t0 - 7, 60_000, 70}, rangeMS: 330_000},
		{grid: grid{t0 - 7, 60_000, 130}, rangeMS: 3_600_000},
		{grid: grid{t0 - 7, 60_000, 70}, rangeMS: 30_000},
		{grid: grid{t0 - 7, 120_000, 40}, rangeMS: 60_000},
	} {
		for _, f := range functions {
			what := fmt.Sprintf("%s %+v", f.expr, win)
			want := lists(t, db, fmt.Sprintf("SELECT series_id, prom_%s(ts, value, '%s') FROM (%s) GROUP BY series_id", f.name, win.spec(f), scan))
			require.Greater(t, len(want), len(kinds)/2, what)
			k := newKernel(t, "prom_"+f.name, win.spec(f))
			require.Equal(t, win.n, k.Steps())
			out := make([]float64, k.Steps())
			for id, s := range w.series {
				ts, v := columns(newest(s), true)
				evalEquals(t, k, ts, v, out, want[uint64(id)], what)
				if !f.instant() {
					ts, v = columns(newest(s), false)
					evalEquals(t, k, ts, v, out, want[uint64(id)], what)
				}
			}
		}
	}
}

// evalEquals expects the bits of a list, or no value if there is none, and that the series stays as
// it is.
func evalEquals(t *testing.T, k *promsql.Kernel, ts []int64, v, out, want []float64, what string) {
	t.Helper()
	before := bitsOf(v)
	present, err := k.Eval(ts, v, out, 0)
	require.NoError(t, err, what)
	wanted := want != nil
	require.Equal(t, wanted, present, what)
	require.Equal(t, before, bitsOf(v), what)
	if want == nil {
		want = make([]float64, len(out))
		for i := range want {
			want[i] = stale
		}
	}
	require.Equal(t, bitsOf(want), bitsOf(out), what)
	facts := promsql.SameTimes
	if !slices.ContainsFunc(v, value.IsStaleNaN) {
		facts |= promsql.NoStale
	}
	for range 2 {
		clear(out)
		present, err = k.Eval(ts, v, out, facts)
		require.NoError(t, err, what)
		require.Equal(t, wanted, present, what)
		require.Equal(t, bitsOf(want), bitsOf(out), what)
	}
}

func bitsOf(v []float64) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = math.Float64bits(x)
	}
	return out
}

func TestKernelOverNothing(t *testing.T) {
	for _, f := range functions {
		k := newKernel(t, "prom_"+f.name, "start=0 step=1000 n=3 range=5000"+f.keys)
		for range 2 {
			evalEquals(t, k, nil, nil, []float64{1, 2, 3}, nil, f.name)
			evalEquals(t, k, []int64{-1, 0}, []float64{stale, stale}, []float64{1, 2, 3}, nil, f.name)
		}
	}
}

func TestKernelAllocatesNothing(t *testing.T) {
	ts, v := make([]int64, 2000), make([]float64, 2000)
	for i := range ts {
		ts[i], v[i] = int64(i)*15_000, float64(i*i%97)+0.25
		if i%50 == 7 {
			v[i] = stale
		}
	}
	for _, f := range functions {
		k := newKernel(t, "prom_"+f.name, "start=600000 step=60000 n=480 range=300000"+f.keys)
		out := make([]float64, k.Steps())
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if present, err := k.Eval(ts, v, out, 0); err != nil || !present {
				t.Error(f.name, present, err)
			}
		}), f.name)
	}
}

// TestKernelErrors: a spec is refused with the words of the aggregate.
func TestKernelErrors(t *testing.T) {
	db := openRange(t, 1)
	const good = "start=0 step=1000 n=2 range=5000"
	for _, c := range []struct{ fn, spec, want string }{
		{"prom_rate", "", "key start is missing"},
		{"prom_rate", good + " phi=0.5", `unknown key "phi"`},
		{"prom_rate", good + " ", "it ends in a blank"},
		{"prom_rate", "start=0 step=1 n=16777217 range=5000", "n is not between 1 and 16777216"},
		{"prom_rate", good + " budget=123456789", "no open budget has the id 123456789"},
		{"prom_quantile_over_time", good, "key phi is missing"},
	} {
		_, err := promsql.NewKernel(c.fn, c.spec)
		require.EqualError(t, err, "parse spec: "+c.want)
		sql := fmt.Sprintf("SELECT 1::UBIGINT, %s(make_timestamptz(range), 1.0::DOUBLE, %s) FROM range(3)", c.fn, duck.Literal(c.spec))
		require.ErrorContains(t, exec(t.Context(), db, sql), err.Error())
	}
	for _, fn := range []string{"rate", "prom_", "prom_sum", "prom_rates", ""} {
		_, err := promsql.NewKernel(fn, good)
		require.EqualError(t, err, fmt.Sprintf("there is no range function %q", fn))
	}
	k := newKernel(t, "prom_rate", good)
	_, err := k.Eval([]int64{1, 2}, []float64{1}, make([]float64, 2), 0)
	require.EqualError(t, err, "evaluate series: 2 times, 1 values and 2 results for 2 steps")
	_, err = k.Eval([]int64{1}, []float64{1}, make([]float64, 3), 0)
	require.EqualError(t, err, "evaluate series: 1 times, 1 values and 3 results for 2 steps")
}

// TestKernelBudget: scratch memory is counted, refused with a typed error, and free once the kernel
// is closed.
func TestKernelBudget(t *testing.T) {
	ts, v := make([]int64, 10_000), make([]float64, 10_000)
	for i := range ts {
		ts[i], v[i] = int64(i)*1000, float64(i%77)
	}
	v[5000] = stale // so that the series is copied
	spec := func(b *promsql.Budget) string {
		return fmt.Sprintf("start=0 step=60000 n=100 range=300000 phi=0.5 budget=%d", b.ID())
	}
	out := make([]float64, 100)

	b := promsql.NewBudget(0)
	k := newKernel(t, "prom_quantile_over_time", spec(b))
	present, err := k.Eval(ts, v, out, 0)
	require.NoError(t, err)
	require.True(t, present)
	require.Greater(t, b.Used(), int64(10_000*16))
	needed := b.Used()
	b.Cancel()
	_, err = k.Eval(ts, v, out, 0)
	require.ErrorIs(t, err, promsql.ErrCancelled)
	k.Close()
	k.Close()
	require.Zero(t, b.Used())
	require.NoError(t, b.Close())

	for _, limit := range []int64{1, needed / 4, needed - 1} { // the copy is refused, or what comes after
		b := promsql.NewBudget(limit)
		k := newKernel(t, "prom_quantile_over_time", spec(b))
		_, err := k.Eval(ts, v, out, 0)
		var over *promsql.MemoryError
		require.ErrorAs(t, err, &over)
		require.Equal(t, b.Err(), err)
		require.Equal(t, limit, over.Limit)
		require.Greater(t, over.Needed, limit)
		_, err = k.Eval(ts[:10:10], v[:10:10], out, 0)
		if limit > 1 {
			require.NoError(t, err, "a refused series does not spoil the next")
		}
		k.Close()
		require.Zero(t, b.Used())
		require.NoError(t, b.Close())
	}
}

// BenchmarkKernel evaluates one series of 1920 samples, 15 s apart, at 480 steps of 60 s; with
// stale markers it is copied first.
func BenchmarkKernel(b *testing.B) {
	const samples = 1920
	ts, clean, marked := make([]int64, samples), make([]float64, samples), make([]float64, samples)
	for i := range ts {
		ts[i], clean[i] = int64(i)*15_000, float64(i%1777*7)+0.5
		marked[i] = clean[i]
		if i%100 == 99 {
			marked[i] = stale
		}
	}
	for _, fn := range []string{"instant", "rate", "avg_over_time", "max_over_time"} {
		k := newKernel(b, "prom_"+fn, "start=60000 step=60000 n=480 range=300000")
		out := make([]float64, k.Steps())
		for name, v := range map[string][]float64{"none": clean, "some": marked} {
			b.Run(fmt.Sprintf("fn=%s/stale=%s", fn, name), func(b *testing.B) {
				for b.Loop() {
					if present, err := k.Eval(ts, v, out, 0); err != nil || !present {
						b.Fatal(present, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/samples, "ns/sample")
			})
		}
	}
}
