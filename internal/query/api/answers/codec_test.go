package answers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"
)

// encodedAlike expects upstream's bytes.
func encodedAlike(t testing.TB, resp *v1.Response) {
	want, err := v1.JSONCodec{}.Encode(resp)
	require.NoError(t, err)
	got, err := Codec{}.Encode(resp)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestCodecWritesUpstreamsBytes(t *testing.T) {
	odd := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, 1e-6, 9.99e-7, 1e20, 1e21, -1e21, 1<<53 - 1, 1 << 53, 1<<53 + 2, -(1 << 53), 1 << 62, 1 << 63, -(1 << 63), 1 << 64,
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 123456789.125,
	}
	points := func(from, step int64) (out []promql.FPoint) {
		for i, f := range odd {
			out = append(out, promql.FPoint{T: from + int64(i)*step, F: f})
		}
		return out
	}
	names := labels.FromStrings("__name__", "m", "a.b", "<&>\"\\\n\u2028\x01ü", "bad", "\xff")
	hist := promql.HPoint{T: 1, H: &histogram.FloatHistogram{Count: 1, Sum: 2}}
	for name, m := range map[string]promql.Matrix{
		"nil": nil, "empty": {}, "no labels": {{Floats: points(0, 1)}},
		"plain labels":  {{Metric: labels.FromStrings("__name__", "m", "a", "b c/d:e{}[]'~", "z", " "), Floats: points(0, 1)}, {Metric: labels.FromStrings("a", "{"), Floats: points(0, 1)}},
		"times":         {{Floats: points(-5_000, 1_001)}, {Metric: names, Floats: points(-5_000, 1_001)[3:]}, {Floats: points(-7, 1)}, {Floats: points(1_700_000_000_010, 100)}},
		"gaps":          {{Floats: points(0, 60_000)}, {Floats: append(points(0, 60_000)[:3:3], points(0, 60_000)[9:]...)}, {Floats: points(30_000, 60_000)[:5]}},
		"growing":       {{Floats: points(60_000, 60_000)[:1]}, {Floats: points(0, 60_000)[:4]}, {Floats: points(0, 60_000)}},
		"no points":     {{Metric: names}, {Metric: names, Floats: points(0, 1)}},
		"histograms":    {{Metric: names, Floats: points(0, 1), Histograms: []promql.HPoint{hist}}, {Floats: points(0, 1)}},
		"last of steps": {{Floats: []promql.FPoint{{T: math.MaxInt64, F: 1}, {T: math.MinInt64 + 1, F: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			data := &v1.QueryData{ResultType: parser.ValueTypeMatrix, Result: m}
			encodedAlike(t, &v1.Response{Status: "success", Data: data})
			data.Stats = &stats.BuiltinStats{}
			encodedAlike(t, &v1.Response{Status: "success", Data: data, Warnings: []string{`"result":[]`}, Infos: []string{"<i>"}})
			encodedAlike(t, &v1.Response{Status: "error", Data: data, Error: "e"})
		})
	}
	for _, data := range []any{
		nil, []string{"a"}, (*v1.QueryData)(nil), &v1.QueryData{ResultType: parser.ValueTypeScalar, Result: promql.Scalar{V: 1}},
		&v1.QueryData{ResultType: parser.ValueTypeVector, Result: promql.Vector{{Metric: names, F: 1}}},
	} {
		encodedAlike(t, &v1.Response{Status: "success", Data: data})
	}
}

func TestCodecWritesRandomMatricesAsUpstream(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		m := make(promql.Matrix, 1+r.IntN(5))
		decimals := r.IntN(2) == 0
		step := 1 + r.Int64N(100_000)
		for i := range m {
			ts := r.Int64N(2_000_000_000_000) - 100_000
			if r.IntN(3) > 0 {
				ts = 1_700_000_000_000
			}
			if r.IntN(3) == 0 {
				step -= step % 1000
				ts = []int64{ts, 0, 1234, 999_990_000, 999_991_001}[r.IntN(5)]
			}
			for range r.IntN(50) {
				f := math.Float64frombits(r.Uint64())
				switch kind := r.IntN(4); {
				case decimals && r.IntN(30) > 0:
					f = float64(r.Int64N(1<<r.IntN(56))-r.Int64N(1<<r.IntN(56))) / math.Pow10(r.IntN(5))
				case kind == 0:
					f = float64(r.Int64N(1 << 55))
				case kind == 1:
					f = r.Float64() * 1000
				}
				ts += step * (1 + r.Int64N(2))
				m[i].Floats = append(m[i].Floats, promql.FPoint{T: ts, F: f})
			}
		}
		encodedAlike(t, &v1.Response{Status: "success", Data: &v1.QueryData{ResultType: parser.ValueTypeMatrix, Result: m}})
	}
}

func BenchmarkCodec(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	m := make(promql.Matrix, 1000)
	for i := range m {
		m[i].Metric = labels.FromStrings("__name__", "m", "instance", "host-000:9100", "g", "g0")
		for k := range 480 {
			m[i].Floats = append(m[i].Floats, promql.FPoint{T: 1_700_000_000_000 + int64(k)*60_000, F: r.Float64()})
		}
	}
	resp := &v1.Response{Status: "success", Data: &v1.QueryData{ResultType: parser.ValueTypeMatrix, Result: m}}
	for name, c := range map[string]v1.Codec{"ours": Codec{}, "upstream": v1.JSONCodec{}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Encode(resp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
