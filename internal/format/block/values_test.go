package block

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	"thirds":   func(_ *rand.Rand, i int) float64 { return noisy(1.0/3, i) },
	"tenths":   func(_ *rand.Rand, i int) float64 { return noisy(0.1, i) },
	"roots":    func(_ *rand.Rand, i int) float64 { return math.Sqrt(float64(i)) },
	"powers":   func(r *rand.Rand, _ int) float64 { return math.Ldexp(1, r.IntN(2098)-1074) },
	"subnormals": func(r *rand.Rand, _ int) float64 {
		return math.Float64frombits(r.Uint64()&(1<<63) | r.Uint64()>>12>>r.IntN(52))
	},
	"tiny":  func(r *rand.Rand, _ int) float64 { return math.Ldexp(r.NormFloat64(), -960-r.IntN(115)) },
	"large": func(r *rand.Rand, _ int) float64 { return math.Ldexp(r.NormFloat64(), 900+r.IntN(124)) },
	"nans":  func(r *rand.Rand, _ int) float64 { return math.Float64frombits(0x7ff<<52 | r.Uint64()) },
	"stale": func(*rand.Rand, int) float64 { return math.Float64frombits(value.StaleNaN) },
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

// tiny reports whether v is so near to 0 that it may have no divisor.
func tiny(v float64) bool { return v != 0 && math.Abs(v) < 0x1p-971 }

// checkCodec holds what the encoder makes of several series against the values, with the readers'
// expression.
func checkCodec(t *testing.T, e *Encoder, all ...[]float64) {
	t.Helper()
	var c Columns
	var want []float64
	for _, vals := range all {
		e.Encode(&c, vals)
		want = append(want, vals...)
	}
	require.Equal(t, []int{len(want), len(want)}, []int{len(c.Int), len(c.Div)})
	for j, v := range want {
		i, d := c.Int[j], c.Div[j]
		fail := func(what string) {
			require.Fail(t, what, "sample %d: %x (%v) is %d/%v", j, math.Float64bits(v), v, i, d)
		}
		if math.Float64bits(v) != math.Float64bits(Value(i, d)) {
			fail("decoded otherwise")
		}
		q := float64(i) / d
		switch {
		case math.IsInf(d, 1):
			if !tiny(v) || q != 0 || math.Signbit(q) != math.Signbit(v) {
				fail("has a divisor")
			}
			continue
		case v != v:
			if q == q || i != 0 || value.IsStaleNaN(v) != value.IsStaleNaN(d) {
				fail("no NaN")
			}
		case math.Float64bits(q) != math.Float64bits(v):
			fail("quotient differs")
		case d == 0 || d < 0 && (i != 0 || d != divNegZero):
			fail("strange divisor")
		}
		if max(i, -i) > maxInt {
			fail("integer too large")
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

// TestCodecKeepsSingles tries values of all kinds alone, and each among decimals.
func TestCodecKeepsSingles(t *testing.T) {
	vals := slices.Clone(oddValues)
	for e := -1074; e < 1024; e++ {
		p := math.Ldexp(1, e)
		vals = append(vals, p, -p, p*(1+0x1p-52), math.Nextafter(p, 0), p*math.Pi, p*1.5)
	}
	for bit := range 52 { // subnormals and payloads, each with one bit, and with all above or below it
		for _, m := range []uint64{1 << bit, 1<<52 - 1<<bit, 1<<(bit+1) - 1} {
			vals = append(vals, math.Float64frombits(m), math.Float64frombits(1<<63|m))
			vals = append(vals, math.Float64frombits(0x7ff<<52|m), math.Float64frombits(0xfff<<52|m))
		}
	}
	for k := range 20 {
		for _, n := range []float64{1, -3, 7, 1234567, 1<<53 - 1, 1 << 53, 1<<53 + 2, 1e17, -1e18 - 256} {
			vals = append(vals, n/math.Pow10(k), math.Nextafter(n/math.Pow10(k), 0))
		}
	}
	var e Encoder
	for _, v := range vals {
		checkCodec(t, &e, []float64{v}, []float64{0.25, 0.5, v, 0.75, v, v, 1234567.01})
	}
	for k := range maxScale + 1 {
		checkCodec(t, &e, append(fillFloats(len(vals)*20, func(i int) float64 { return float64(i) / pow10[k] }), vals...))
	}
	checkCodec(t, &e, vals)
	slices.Reverse(vals)
	checkCodec(t, &e, vals)
}

func fillFloats(n int, f func(i int) float64) []float64 {
	vals := make([]float64, n)
	for i := range vals {
		vals[i] = f(i)
	}
	return vals
}

// TestNoiseTakesFewDivisors: of decimals with rounding noise hardly one is a decimal, yet they
// share few divisors, and the integers are those of the decimals.
func TestNoiseTakesFewDivisors(t *testing.T) {
	for k := range 10 {
		r := rand.New(rand.NewPCG(uint64(k), 6))
		vals := fillFloats(5000, func(i int) float64 {
			v := float64(10_000+7*i) / pow10[k]
			return math.Float64frombits(math.Float64bits(v) + uint64(r.IntN(maxNoise+1)) - maxNoise/2)
		})
		var e Encoder
		var c Columns
		e.Encode(&c, vals)
		checkCodec(t, &e, vals)
		p, distinct, far := pow10[fineScale(k)], map[float64]bool{}, 0
		for j, d := range c.Div {
			for d < p*0.7 {
				d *= 2 // divided by what the integers have in common
			}
			distinct[d] = true
			if math.Abs(d-p) > 2*maxNoise*ulp(p) {
				far++
			} else {
				require.InDelta(t, 10_000+7*j, float64(c.Int[j])*pow10[k]/c.Div[j], 1e-6)
			}
		}
		require.Less(t, far, len(vals)/50, "scale %d", k)
		require.Less(t, len(distinct)-far, 2*maxNoise+1, "scale %d", k)
	}
}

func TestCodecChooses(t *testing.T) {
	stale := math.Float64frombits(value.StaleNaN)
	const none = 0
	for _, tc := range []struct {
		name   string
		vals   []float64
		div    float64 // of all others
		noisy  int     // samples with a divisor next to it; -1: most
		others int     // samples with any other one
	}{
		{"integers", fillFloats(500, func(i int) float64 { return float64(3 * i) }), 1, none, none},
		{"zeros", fillFloats(500, func(int) float64 { return 0 }), 1, none, none},
		{"pages", fillFloats(500, func(i int) float64 { return float64(i%7) * 4096 }), 0x1p-12, none, none},
		{"tenths", fillFloats(500, func(i int) float64 { return float64(2*i+1) / 10 }), 10, none, none},
		{"fifths", fillFloats(500, func(i int) float64 { return float64(i) / 5 }), 5, none, none},
		{"late hundredths", fillFloats(500, func(i int) float64 { return float64(i) / []float64{1, 1, 1, 1, 100}[i/100] }), 100, none, none},
		{"picoseconds", fillFloats(500, func(i int) float64 { return float64(2*i+1) / 1e12 }), 1e12, none, none},
		{"noise", fillFloats(500, func(i int) float64 { return noisy(0.01, i) }), 500, -1, none},
		{"stale at the end", append(fillFloats(500, func(i int) float64 { return float64(i) / 10 }), stale), 10, none, 1},
		{"few odd ones", fillFloats(500, func(i int) float64 {
			switch i % 100 {
			case 98:
				return math.Copysign(0, -1)
			case 99:
				return math.Inf(1)
			}
			return float64(i) / 10
		}), 10, none, 10},
		{"one with more digits", fillFloats(500, func(i int) float64 { return map[int]float64{77: math.Pi}[i] + 0.1 }), 10, none, 1},
		{"clock", fillFloats(500, func(i int) float64 { return 1795220058 + float64(i*i)/0x1p22 }), 0x1p22, none, none},
		{"tiny", fillFloats(500, func(i int) float64 { return (1 + float64(i*i)/0x1p52) * 0x1p-80 }), 0x1p132, none, none},
		{"huge integers", fillFloats(500, func(i int) float64 { return 1 << 60 * (1 + float64(i)/0x1p50) }), 0x1p-10, none, none},
		{"roots", fillFloats(500, func(i int) float64 { return math.Sqrt(float64(1<<20 + i)) }), 0x1p42, none, none},
		{"stale", fillFloats(3, func(int) float64 { return stale }), 1, none, 3},
		{"one", []float64{0.25}, 100, none, none},
		{"least", []float64{0x1p-1023, 0x1p-1022}, 0x1p1023, none, none},
		{"below", []float64{0x1p-1074, -0x1p-1073}, 0x1p1023, none, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e Encoder
			var c Columns
			e.Encode(&c, tc.vals)
			noisy, others := 0, 0
			for _, d := range c.Div {
				switch {
				case d == tc.div:
				case math.Abs(d-tc.div) <= 2*maxNoise*ulp(tc.div):
					noisy++
				default:
					others++
				}
			}
			require.Equal(t, tc.others, others)
			if tc.noisy < 0 {
				require.Greater(t, noisy, len(tc.vals)/2)
			} else {
				require.Equal(t, tc.noisy, noisy)
			}
			checkCodec(t, &e, tc.vals)
		})
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for name, kind := range valueKinds {
		vals := fillFloats(500, func(i int) float64 { return kind(r, i) })
		var e Encoder
		var c Columns
		e.Encode(&c, vals)
		require.Zero(t, testing.AllocsPerRun(5, func() {
			c.Reset()
			e.Encode(&c, vals)
		}), name)
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
	for _, kind := range []string{"counter", "constant", "pages", "noisy", "tenths", "unit", "roots"} {
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
