package block

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"
)

var oddValues = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.1, 12.233999999999998, math.Pi, math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
	math.SmallestNonzeroFloat64, 0x1p-1022, 1 << 53, 1<<53 - 1, 1<<53 + 2, -(1 << 53), 1 << 62, 1 << 63, 0x1p64, 1e15 + 0.5, 1e22, 1e23,
	math.Float64frombits(value.StaleNaN), math.Float64frombits(value.NormalNaN), math.Float64frombits(0xfff8dead_beef0001),
	math.Float64frombits(0x7ff00000_00000001), math.Float64frombits(0xfff00000_00000001),
}

// valueKinds make one sample of a series; i counts its samples.
var valueKinds = map[string]func(r *rand.Rand, i int) float64{
	"bits":     func(r *rand.Rand, _ int) float64 { return math.Float64frombits(r.Uint64()) },
	"odd":      func(r *rand.Rand, _ int) float64 { return oddValues[r.IntN(len(oddValues))] },
	"unit":     func(r *rand.Rand, _ int) float64 { return r.Float64() },
	"ints":     func(r *rand.Rand, _ int) float64 { return float64(r.Int64N(1<<54) - 1<<53) },
	"huge":     func(r *rand.Rand, _ int) float64 { return float64(int64(r.Uint64())) },
	"pages":    func(r *rand.Rand, _ int) float64 { return float64(r.Int64N(1<<40) << 12) },
	"constant": func(*rand.Rand, int) float64 { return 0.3 },
	"clock":    func(r *rand.Rand, i int) float64 { return 1795220058.123 + float64(i) + float64(r.IntN(1000))/0x1p22 },
	"zero":     func(*rand.Rand, int) float64 { return 0 },
	"counter":  func(_ *rand.Rand, i int) float64 { return float64(i) / 100 },
	"quarters": func(r *rand.Rand, _ int) float64 { return float64(r.Int64N(4_000_000)) / 4 },
	"noisy":    func(r *rand.Rand, i int) float64 { return noisy(0.01, i+r.IntN(3)) },
	"stale":    func(*rand.Rand, int) float64 { return math.Float64frombits(value.StaleNaN) },
}

func init() {
	for k := range 18 {
		valueKinds[fmt.Sprintf("scale %d", k)] = func(r *rand.Rand, _ int) float64 {
			return float64(r.Int64N(2_000_000)-1_000_000) / math.Pow10(k)
		}
	}
}

// noisy adds step n times, as counters of seconds do.
func noisy(step float64, n int) float64 {
	sum := 12.3
	for range n {
		sum += step
	}
	return sum
}

// checkCodec holds what the encoder makes of several series against the values, with the readers' expression.
func checkCodec(t *testing.T, e *Encoder, all ...[]float64) {
	t.Helper()
	var c Columns
	var want []float64
	for _, vals := range all {
		e.Encode(&c, vals)
		want = append(want, vals...)
	}
	require.Equal(t, []int{len(want), len(want), len(want)}, []int{len(c.Int), len(c.Div), len(c.Raw)})
	got := DecodeValues(nil, c.Int, c.Div, c.Raw)
	require.Len(t, got, len(want))
	for j, v := range want {
		i, d, r := c.Int[j], c.Div[j], c.Raw[j]
		about := func() string {
			return fmt.Sprintf("sample %d: %x (%v) is %v + %d/%v", j, math.Float64bits(v), v, r, i, d)
		}
		require.Less(t, max(i, -i), int64(maxInt), about())
		if math.Float64bits(v) != math.Float64bits(got[j]) {
			require.Fail(t, "decoded otherwise", about())
		}
		sum := r + float64(i)/d
		switch {
		case v != v:
			require.True(t, sum != sum, about())
		case math.Float64bits(sum) != math.Float64bits(v):
			require.Fail(t, "sum differs", about())
		}
		stale := value.IsStaleNaN(v)
		require.Equal(t, stale, d == divStale, about())
		if d < 0 {
			require.Zero(t, i, about())
			require.True(t, stale || d == divRaw, about())
		}
	}
}

func TestCodecKeepsEveryBit(t *testing.T) {
	for name, kind := range valueKinds {
		t.Run(name, func(t *testing.T) {
			var e Encoder
			for seed := range uint64(30) {
				r := rand.New(rand.NewPCG(seed, 1))
				var all [][]float64
				for range 1 + r.IntN(4) {
					vals := make([]float64, r.IntN(300))
					for i := range vals {
						vals[i] = kind(r, i)
					}
					all = append(all, vals)
				}
				checkCodec(t, &e, all...)
			}
		})
	}
}

func TestCodecKeepsMixtures(t *testing.T) {
	var kinds []func(*rand.Rand, int) float64
	for _, k := range valueKinds {
		kinds = append(kinds, k)
	}
	var e Encoder
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		some := kinds[r.IntN(len(kinds))]
		rare := r.IntN(40)
		vals := make([]float64, r.IntN(600))
		for i := range vals {
			if vals[i] = some(r, i); r.IntN(rare+1) == 0 {
				vals[i] = kinds[r.IntN(len(kinds))](r, i)
			}
		}
		checkCodec(t, &e, vals)
	}
}

func TestCodecChooses(t *testing.T) {
	series := func(n int, f func(i int) float64) []float64 {
		vals := make([]float64, n)
		for i := range vals {
			vals[i] = f(i)
		}
		return vals
	}
	stale := math.Float64frombits(value.StaleNaN)
	const raws, noResidual = 0, 0
	for _, tc := range []struct {
		name     string
		vals     []float64
		div      float64 // of all that are not raw
		raw      int     // samples
		residual int     // samples that have one; -1: most
	}{
		{"integers", series(500, func(i int) float64 { return float64(3 * i) }), 1, raws, noResidual},
		{"zeros", series(500, func(int) float64 { return 0 }), 1, raws, noResidual},
		{"pages", series(500, func(i int) float64 { return float64(i%7) * 4096 }), 0x1p-12, raws, noResidual},
		{"tenths", series(500, func(i int) float64 { return float64(2*i+1) / 10 }), 10, raws, noResidual},
		{"fifths", series(500, func(i int) float64 { return float64(i) / 5 }), 5, raws, noResidual},
		{"late hundredths", series(500, func(i int) float64 { return float64(i) / []float64{1, 1, 1, 1, 100}[i/100] }), 100, raws, noResidual},
		{"picoseconds", series(500, func(i int) float64 { return float64(2*i+1) / 1e12 }), 1e12, raws, noResidual},
		{"noise", series(500, func(i int) float64 { return noisy(0.01, i) }), 100, raws, -1},
		{"stale at the end", append(series(500, func(i int) float64 { return float64(i) / 10 }), stale), 10, 1, noResidual},
		{"few odd ones", series(500, func(i int) float64 {
			switch i % 100 {
			case 98:
				return math.Copysign(0, -1)
			case 99:
				return math.Inf(1)
			}
			return float64(i) / 10
		}), 10, 10, noResidual},
		{"one with more digits", series(500, func(i int) float64 { return map[int]float64{77: math.Pi}[i] + 0.1 }), 10, raws, 1},
		{"random", series(500, func(i int) float64 { return math.Sqrt(float64(i*i + 2)) }), 0, 500, noResidual},
		{"clock", series(500, func(i int) float64 { return 1795220058 + float64(i*i)/0x1p22 }), 0x1p22, raws, noResidual},
		{"tiny", series(500, func(i int) float64 { return (1 + float64(i*i)/0x1p52) * 0x1p-80 }), 0x1p132, raws, noResidual},
		{"huge integers", series(500, func(i int) float64 { return 1 << 60 * (1 + float64(i)/0x1p50) }), 0x1p-10, raws, noResidual},
		{"stale", series(3, func(int) float64 { return stale }), 0, 3, noResidual},
		{"one", []float64{0.25}, 100, raws, noResidual},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e Encoder
			var c Columns
			e.Encode(&c, tc.vals)
			raw, residual := 0, 0
			for j, d := range c.Div {
				if d < 0 {
					raw++
					continue
				}
				require.Equal(t, tc.div, d, "sample %d: %v", j, tc.vals[j])
				if c.Raw[j] != 0 {
					residual++
				}
			}
			require.Equal(t, tc.raw, raw)
			if tc.residual < 0 {
				require.Greater(t, residual, len(tc.vals)/2)
			} else {
				require.Equal(t, tc.residual, residual)
			}
			checkCodec(t, &e, tc.vals)
		})
	}
}

func FuzzCodec(f *testing.F) {
	seed := func(vals ...float64) {
		var b []byte
		for _, v := range vals {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b)
	}
	seed(oddValues...)
	seed(0.1, 0.2, 0.30000000000000004, 1.1)
	seed(4096, 8192, 1<<53-1, 1<<54)
	var e Encoder
	f.Fuzz(func(t *testing.T, b []byte) {
		var vals []float64
		for ; len(b) >= 8; b = b[8:] {
			vals = append(vals, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		checkCodec(t, &e, vals, vals[:len(vals)/2])
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, kind := range []string{"counter", "constant", "pages", "noisy", "unit"} {
		for _, n := range []int{36, 720} {
			b.Run(fmt.Sprintf("kind=%s/samples=%d", kind, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				vals := make([]float64, n)
				for i := range vals {
					vals[i] = valueKinds[kind](r, i)
				}
				var e Encoder
				var c Columns
				for b.Loop() {
					c.Reset()
					e.Encode(&c, vals)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sample")
			})
		}
	}
}

func BenchmarkDecodeValues(b *testing.B) {
	vals := make([]float64, 10_000)
	for i := range vals {
		vals[i] = float64(i) / 100
	}
	var e Encoder
	var c Columns
	e.Encode(&c, vals)
	var out []float64
	for b.Loop() {
		out = DecodeValues(out[:0], c.Int, c.Div, c.Raw)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(vals)), "ns/sample")
}
