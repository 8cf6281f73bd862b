package promsql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql/kernel"
)

// function is one aggregate and the expression that upstream evaluates for it; %s is the selector
// with its range and modifiers.
type function struct {
	name, expr string
	keys       string // parameters in the spec
	picks      bool   // the result is a sample's value, so that even the payload of NaN is the same
}

var functions = []function{
	{name: "instant", expr: "%s", picks: true},
	{name: "timestamp", expr: "timestamp(%s)"},
	{name: "rate", expr: "rate(%s)"},
	{name: "increase", expr: "increase(%s)"},
	{name: "delta", expr: "delta(%s)"},
	{name: "irate", expr: "irate(%s)"},
	{name: "idelta", expr: "idelta(%s)"},
	{name: "deriv", expr: "deriv(%s)"},
	{name: "predict_linear", expr: "predict_linear(%s, 3600.5)", keys: " dur=0x1.c21p+11"},
	{name: "changes", expr: "changes(%s)"},
	{name: "resets", expr: "resets(%s)"},
	{name: "avg_over_time", expr: "avg_over_time(%s)"},
	{name: "min_over_time", expr: "min_over_time(%s)", picks: true},
	{name: "max_over_time", expr: "max_over_time(%s)", picks: true},
	{name: "sum_over_time", expr: "sum_over_time(%s)"},
	{name: "count_over_time", expr: "count_over_time(%s)"},
	{name: "last_over_time", expr: "last_over_time(%s)", picks: true},
	{name: "first_over_time", expr: "first_over_time(%s)", picks: true},
	{name: "present_over_time", expr: "present_over_time(%s)"},
	{name: "stddev_over_time", expr: "stddev_over_time(%s)"},
	{name: "stdvar_over_time", expr: "stdvar_over_time(%s)"},
	{name: "mad_over_time", expr: "mad_over_time(%s)"},
	{name: "quantile_over_time", expr: "quantile_over_time(0, %s)", keys: " phi=0"},
	{name: "quantile_over_time", expr: "quantile_over_time(0.37, %s)", keys: " phi=0.37"},
	{name: "quantile_over_time", expr: "quantile_over_time(0.99, %s)", keys: " phi=0.99"},
	{name: "quantile_over_time", expr: "quantile_over_time(1, %s)", keys: " phi=1"},
	{name: "quantile_over_time", expr: "quantile_over_time(-0.1, %s)", keys: " phi=-0.1"},
	{name: "quantile_over_time", expr: "quantile_over_time(1.5, %s)", keys: " phi=1.5"},
	{name: "quantile_over_time", expr: "quantile_over_time(NaN, %s)", keys: " phi=NaN"},
	{name: "ts_of_min_over_time", expr: "ts_of_min_over_time(%s)"},
	{name: "ts_of_max_over_time", expr: "ts_of_max_over_time(%s)"},
	{name: "ts_of_first_over_time", expr: "ts_of_first_over_time(%s)"},
	{name: "ts_of_last_over_time", expr: "ts_of_last_over_time(%s)"},
	{name: "double_exponential_smoothing", expr: "double_exponential_smoothing(%s, 0.3, 0.6)", keys: " sf=0.3 tf=0.6"},
}

// TestFunctionsAreListed holds the functions of the tests against the list that C code is made
// from.
func TestFunctionsAreListed(t *testing.T) {
	list, err := kernel.Headers.ReadFile("functions.h")
	require.NoError(t, err)
	var listed, tested []string
	for _, m := range regexp.MustCompile(`X\(\w+, "(\w+)"`).FindAllStringSubmatch(string(list), -1) {
		listed = append(listed, m[1])
	}
	for _, f := range functions {
		tested = append(tested, f.name)
	}
	require.Equal(t, listed, slices.Compact(tested))
}

func (f function) instant() bool { return f.name == "instant" || f.name == "timestamp" }

// window is a range, and where it lies.
type window struct {
	grid
	rangeMS int64
	shift   int64  // ms: the evaluation time less the window's end
	suffix  string // the offset that makes it so
}

func (w window) selector(f function) string {
	if f.instant() {
		return "m" + w.suffix
	}
	return fmt.Sprintf("m[%dms]%s", w.rangeMS, w.suffix)
}

func (w window) spec(f function) string {
	r := w.rangeMS
	if f.instant() {
		r = lookback.Milliseconds()
	}
	return fmt.Sprintf("start=%d step=%d n=%d range=%d shift=%d%s", w.start-w.shift, w.step, w.n, r, w.shift, f.keys)
}

// kinds make the values of a series, sample by sample.
var kinds = []func(rng *rand.Rand) func(i int) float64{
	counter(0.02, func(rng *rand.Rand) float64 { return float64(rng.IntN(100)) }),
	counter(0.2, func(rng *rand.Rand) float64 { return rng.Float64() * 10 }),
	counter(0, func(*rand.Rand) float64 { return 0.1 }),
	func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return rng.NormFloat64() * 1e3 } },
	func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return float64(rng.IntN(7)) - 3 } },
	func(rng *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Round(rng.NormFloat64()*1e4) / 1e3 }
	},
	func(*rand.Rand) func(int) float64 { return func(int) float64 { return 42.5 } },
	func(rng *rand.Rand) func(int) float64 {
		return func(int) float64 { return (rng.Float64() - 0.3) * math.MaxFloat64 }
	},
	func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return rng.Float64() * 1e-310 } },
	func(rng *rand.Rand) func(int) float64 {
		return func(int) float64 { return float64(rng.Int64N(1<<52) - 1<<51) }
	},
	odd(0.1, math.Inf(1), math.Inf(-1), math.NaN(), 0),
	odd(0.5, math.NaN(), math.Float64frombits(0x7ff8000000000123), math.Float64frombits(0xfff8000000000001)),
	odd(1, math.NaN(), math.Float64frombits(0x7ff8000000000123)),
	odd(0.9, math.Inf(1), math.Inf(-1)),
	odd(1, math.Copysign(0, -1)),
	odd(0.5, math.Inf(1)),
	odd(0.8, 0, math.Copysign(0, -1)),
	func(*rand.Rand) func(int) float64 { // a window's increase is much more than its first value
		return func(i int) float64 { return math.Exp2(float64(i) / 2) }
	},
}

func counter(reset float64, step func(*rand.Rand) float64) func(*rand.Rand) func(int) float64 {
	return func(rng *rand.Rand) func(int) float64 {
		v := float64(rng.IntN(3)) * step(rng) * 50
		return func(int) float64 {
			v += step(rng)
			if rng.Float64() < reset {
				v = step(rng)
			}
			return v
		}
	}
}

func odd(p float64, values ...float64) func(*rand.Rand) func(int) float64 {
	return func(rng *rand.Rand) func(int) float64 {
		return func(int) float64 {
			if rng.Float64() < p {
				return values[rng.IntN(len(values))]
			}
			return math.Round(rng.NormFloat64() * 10)
		}
	}
}

// newWorld makes series of every kind with about n samples in [start, start + n*15 s): jitter,
// gaps, stale markers, and times that several ranks have.
func newWorld(rng *rand.Rand, start int64, n int) world {
	var w world
	for _, kind := range kinds {
		next := kind(rng)
		stales, doubles := []float64{0, 0.03}[rng.IntN(2)], []float64{0, 0, 0.2}[rng.IntN(3)]
		jitter := []int64{0, 0, 300, 14000}[rng.IntN(4)]
		var s []sample
		at := start
		for i := range n {
			if rng.Float64() < 0.004 {
				at += 15000 * rng.Int64N(40)
			}
			x := sample{rank: 5, ms: at + int64(i)*15000, v: next(i)}
			if jitter > 0 {
				x.ms += rng.Int64N(jitter)
			}
			if rng.Float64() < stales {
				x.v = stale
			}
			s = append(s, x)
			if rng.Float64() < doubles {
				other := sample{rank: []uint64{1, 2, 7, math.MaxUint64}[rng.IntN(4)], ms: x.ms, v: next(i)}
				if rng.IntN(5) == 0 {
					other.v = stale
				}
				s = append(s, other)
			}
		}
		w.series = append(w.series, s)
	}
	return w
}

// check compares every function over a world with upstream's.
func check(t *testing.T, db *duck.DB, w world, scan string, win window, full bool) {
	t.Helper()
	for _, f := range functions {
		want := upstream(t, w, fmt.Sprintf(f.expr, win.selector(f)), win.grid)
		if full {
			require.Len(t, want, len(w.series), "%s has no result for some series: nothing is compared", f.name)
		}
		got := lists(t, db, fmt.Sprintf("SELECT series_id, prom_%s(ts, value, '%s') FROM (%s) GROUP BY series_id", f.name, win.spec(f), scan))
		compare(t, fmt.Sprintf("%s, %+v", fmt.Sprintf(f.expr, win.selector(f)), win), f.picks, want, got)
	}
}

func compare(t *testing.T, what string, payload bool, want, got map[uint64][]float64) {
	t.Helper()
	for id, list := range want {
		require.Len(t, got[id], len(list), "%s: series %d", what, id)
		for k, v := range list {
			if x := got[id][k]; !same(v, x, payload) {
				require.Failf(t, "values differ", "%s: series %d step %d: upstream has %v (%x), got %v (%x)", what, id, k, v, math.Float64bits(v), x, math.Float64bits(x))
			}
		}
	}
	for id := range got {
		require.Contains(t, want, id, "%s: series", what)
	}
}

func same(want, got float64, payload bool) bool {
	a, b := math.Float64bits(want), math.Float64bits(got)
	absent := math.Float64bits(stale)
	return a == b || !payload && want != want && got != got && a != absent && b != absent
}

// TestFunctionsEqualUpstream compares every function with Prometheus's engine, bit for bit.
func TestFunctionsEqualUpstream(t *testing.T) {
	const t0 = 1_700_000_000_000
	for _, c := range []struct {
		name    string
		start   int64
		samples int
		windows []window
	}{
		{"overlapping", t0, 300, []window{
			{grid: grid{t0 + 600_000, 60_000, 50}, rangeMS: 300_000},
			{grid: grid{t0 + 601_234, 17_001, 90}, rangeMS: 100_001, shift: 77_007, suffix: " offset 77007ms"},
			{grid: grid{t0 - 100_000, 30_000, 100}, rangeMS: 1_800_000, shift: -50_000, suffix: " offset -50s"},
		}},
		{"apart", t0, 300, []window{
			{grid: grid{t0 + 60_000, 600_000, 8}, rangeMS: 300_000},
			{grid: grid{t0 + 59_999, 300_000, 14}, rangeMS: 300_000},
		}},
		{"one step", t0, 400, []window{
			{grid: grid{t0 + 4_000_000, 1, 1}, rangeMS: 3_600_000},
			{grid: grid{t0 + 4_000_000, 60_000, 1}, rangeMS: 1},
		}},
		{"many samples of a step", t0, 900, []window{{grid: grid{t0 + 7_000_000, 900_000, 5}, rangeMS: 3_600_000}}},
		{"around the epoch", -2_000_000, 300, []window{{grid: grid{-1_500_000, 60_000, 40}, rangeMS: 300_000}}},
		{"nothing there", t0, 20, []window{
			{grid: grid{t0 + 10_000_000_000, 60_000, 5}, rangeMS: 300_000},
			{grid: grid{t0 - 10_000_000, 60_000, 5}, rangeMS: 300_000},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := openRange(t, 4)
			rng := rand.New(rand.NewPCG(uint64(len(c.name)), 7))
			w := newWorld(rng, c.start, c.samples)
			for i, win := range c.windows {
				check(t, db, w, w.rows(t, db, rng, i%2 == 0), win, c.name == "overlapping")
			}
		})
	}
}

// TestAtModifier: with @ the window stands still while the evaluation time is the query's first.
func TestAtModifier(t *testing.T) {
	const t0 = 1_700_000_000_000
	db := openRange(t, 2)
	rng := rand.New(rand.NewPCG(3, 3))
	w := newWorld(rng, t0, 100)
	scan := w.rows(t, db, rng, true)
	const at, eval, offset = t0 + 900_000, t0 + 5_000_000, 30_000
	for _, f := range functions {
		if f.instant() {
			continue
		}
		suffix := fmt.Sprintf("m[5m] @ %d.000 offset 30s", at/1000)
		want := upstream(t, w, fmt.Sprintf(f.expr, suffix), grid{eval, 60_000, 1})
		spec := fmt.Sprintf("start=%d step=1 n=1 range=300000 shift=%d%s", int64(at-offset), int64(eval-at+offset), f.keys)
		got := lists(t, db, fmt.Sprintf("SELECT series_id, prom_%s(ts, value, '%s') FROM (%s) GROUP BY ALL", f.name, spec, scan))
		compare(t, fmt.Sprintf(f.expr, suffix), f.picks, want, got)
	}
}

// TestSpanBeyond32Bits: samples of one series may be years apart.
func TestSpanBeyond32Bits(t *testing.T) {
	db := openRange(t, 2)
	const year = int64(365 * 24 * 3600 * 1000)
	var w world
	var s []sample
	for i := range int64(40) {
		s = append(s, sample{1, i * year / 10, float64(i)}, sample{1, i*year/10 + 1000, float64(i) + 0.5})
	}
	w.series = append(w.series, s)
	scan := w.rows(t, db, rand.New(rand.NewPCG(1, 1)), true)
	check(t, db, w, scan, window{grid: grid{year, year / 20, 40}, rangeMS: year}, true)
}

// TestNullsAndEmpty: rows with a NULL are not there, and a group without rows has no list.
func TestNullsAndEmpty(t *testing.T) {
	db := openRange(t, 2)
	const spec = "start=0 step=1000 n=2 range=5000"
	sql := `SELECT id::UBIGINT, prom_sum_over_time(make_timestamptz(ms * 1000), v, '` + spec + `') FROM (VALUES
		(1, -1000, 1.5::DOUBLE), (1, 0, NULL), (1, NULL, 7), (1, 1000, 2), (2, 0, NULL), (3, 2000, 1)) t(id, ms, v) GROUP BY id`
	require.Equal(t, map[uint64][]float64{1: {1.5, 3.5}}, lists(t, db, sql))
	sql = "SELECT 1::UBIGINT, prom_rate(make_timestamptz(range), range::DOUBLE, '" + spec + "') FROM range(0)"
	require.Empty(t, lists(t, db, sql))
}

func TestSpecErrors(t *testing.T) {
	db := openRange(t, 2)
	const good = "start=0 step=1000 n=2 range=5000"
	for _, c := range []struct{ fn, spec, want string }{
		{"rate", "", "key start is missing"},
		{"rate", "start=0 step=1000 n=2", "key range is missing"},
		{"rate", good + " phi=0.5", `unknown key "phi"`},
		{"rate", good + " colour=red", `unknown key "colour"`},
		{"rate", good + "  shift=1", `"" is no key=value`},
		{"rate", good + " ", "it ends in a blank"},
		{"rate", good + " shift", `"shift" is no key=value`},
		{"rate", good + " shift=", `"" is no value of shift`},
		{"rate", good + " shift=1.5", `"1.5" is no value of shift`},
		{"rate", good + " shift=99999999999999999999", "is no value of shift"},
		{"rate", good + " start=1", "key start is there twice"},
		{"rate", "start=0 step=0 n=2 range=5000", "step is not positive"},
		{"rate", "start=0 step=1 n=0 range=5000", "n is not between 1 and 16777216"},
		{"rate", "start=0 step=1 n=16777217 range=5000", "n is not between 1 and 16777216"},
		{"rate", "start=0 step=1 n=1 range=0", "range is not positive"},
		{"rate", "start=9223372036854775807 step=1 n=2 range=1", "a time of the grid is beyond 64 bits"},
		{"rate", good + " budget=123456789", "no open budget has the id 123456789"},
		{"quantile_over_time", good, "key phi is missing"},
		{"quantile_over_time", good + " phi=x", `"x" is no value of phi`},
		{"quantile_over_time", good + " phi=" + strings.Repeat("1", 100), "is no value of phi"},
		{"double_exponential_smoothing", good + " sf=0 tf=0.5", "sf is not between 0 and 1"},
		{"double_exponential_smoothing", good + " sf=0.5 tf=1", "tf is not between 0 and 1"},
	} {
		sql := fmt.Sprintf("SELECT 1::UBIGINT, prom_%s(make_timestamptz(range), 1.0::DOUBLE, %s) FROM range(3)", c.fn, duck.Literal(c.spec))
		err := db.Each(t.Context(), sql, nil, []string{duck.UBigInt, duck.Doubles}, func(int, []duck.Vector) error { return nil })
		require.ErrorContains(t, err, "parse spec: ", "%q", c.spec)
		require.ErrorContains(t, err, c.want, "%q", c.spec)
	}
}
