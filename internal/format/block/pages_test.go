package block

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

func newTestPages(t testing.TB, bytes bool) *intPages {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	return newIntPages(z, bytes, tryAll)
}

// decodePage reads a page with the library's decoders.
func decodePage(t *testing.T, p parquetfile.Page, dict []byte) []int64 {
	t.Helper()
	var out []int64
	switch p.Encoding {
	case format.Plain:
		require.Zero(t, len(p.Data)%8)
		for b := p.Data; len(b) > 0; b = b[8:] {
			out = append(out, int64(binary.LittleEndian.Uint64(b)))
		}
	case format.DeltaBinaryPacked:
		var err error
		out, err = new(delta.BinaryPackedEncoding).DecodeInt64(nil, p.Data)
		require.NoError(t, err)
	case format.RLEDictionary:
		at, err := new(rle.DictionaryEncoding).DecodeInt32(nil, p.Data)
		require.NoError(t, err)
		for _, i := range at[:p.Values] { // the last group of eight is padded
			out = append(out, int64(binary.LittleEndian.Uint64(dict[8*i:])))
		}
	default:
		require.Fail(t, "encoding", p.Encoding)
	}
	require.Len(t, out, p.Values)
	return out
}

// intKinds make the integers of series.
var intKinds = map[string]func(r *rand.Rand, n int) []int64{
	"constant": func(_ *rand.Rand, n int) []int64 { return slices.Repeat([]int64{42}, n) },
	"levels": func(r *rand.Rand, n int) []int64 { // stays for long, then goes elsewhere
		at := r.Int64()
		return fill(n, func(i int) int64 {
			if i%400 == 399 {
				at = r.Int64()
			}
			return at
		})
	},
	"extremes": func(r *rand.Rand, n int) []int64 {
		return fill(n, func(int) int64 { return []int64{math.MinInt64, math.MaxInt64, 0, -1}[r.IntN(4)] })
	},
	"walk": func(r *rand.Rand, n int) []int64 {
		at := int64(1) << 40
		return fill(n, func(int) int64 { at += r.Int64N(1000); return at })
	},
	"steps": func(r *rand.Rand, n int) []int64 { // a counter that mostly goes by a few small steps, and rarely by any
		at := int64(1) << 40
		return fill(n, func(int) int64 { at += []int64{0, 0, 3, 7, 7, 7, 7, r.Int64N(100)}[r.IntN(8)]; return at })
	},
	"rhythm": func(r *rand.Rand, n int) []int64 { // a counter that repeats one of a few sequences of steps
		at, beats := int64(1)<<40, fill(300, func(int) int64 { return r.Int64N(100) })
		from := 0
		return fill(n, func(i int) int64 {
			if i%30 == 0 {
				from = r.IntN(10) * 30
			}
			at += beats[from+i%30]
			return at
		})
	},
	"gauge": func(r *rand.Rand, n int) []int64 { // goes up and down by small random steps
		at := 1e6
		return fill(n, func(int) int64 { at += r.NormFloat64(); return int64(at) })
	},
	"few values": func(r *rand.Rand, n int) []int64 {
		set := fill(20, func(int) int64 { return r.Int64N(1 << 40) })
		return fill(n, func(int) int64 { return set[r.IntN(len(set))] })
	},
	"bits": func(r *rand.Rand, n int) []int64 { return fill(n, func(int) int64 { return int64(r.Uint64()) }) },
}

func fill(n int, f func(int) int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func TestPagesKeepIntegers(t *testing.T) {
	var kinds []func(*rand.Rand, int) []int64
	for _, k := range intKinds {
		kinds = append(kinds, k)
	}
	for seed := range uint64(60) {
		p := newTestPages(t, seed%2 == 0)
		r := rand.New(rand.NewPCG(seed, 3))
		var vals []int64
		var ends []int
		long := 1 + r.IntN(6000)
		for range 1 + r.IntN(30) {
			vals = append(vals, kinds[r.IntN(len(kinds))](r, 1+r.IntN(long))...)
			ends = append(ends, len(vals))
		}
		chunk, err := p.lay(vals, ends, nil)
		require.NoError(t, err)
		var got []int64
		pages := chunk.Pages
		for i, page := range pages {
			got = append(got, decodePage(t, page, chunk.Dict)...)
			require.Contains(t, ends, len(got), "a page ends where a series does")
			if i < len(pages)-1 {
				require.GreaterOrEqual(t, page.Values, unitValues)
			}
			require.Less(t, page.Values, pageValues+long+wideValues)
		}
		require.Equal(t, vals, got)
	}
}

func TestPagesChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 2000
	of := func(kind string) []int64 { return intKinds[kind](r, n) }
	type page struct {
		encoding format.Encoding
		values   int
		literals bool
	}
	delta := func(n int) page { return page{format.DeltaBinaryPacked, n, false} }
	for _, tc := range []struct {
		name   string
		bytes  bool
		series [][]int64
		want   []page
	}{
		{"constant", true, [][]int64{of("constant"), of("constant")}, []page{{format.RLEDictionary, 2 * n, false}}},
		{"levels", true, [][]int64{of("levels")}, []page{{format.RLEDictionary, n, false}}},
		{"counter", false, [][]int64{of("walk")}, []page{delta(n)}},
		{"set", true, [][]int64{of("few values")}, []page{{format.Plain, n, false}}},
		{"like to like", false, [][]int64{of("walk"), of("constant"), of("few values"), of("few values"), of("walk")}, []page{
			delta(n), {format.RLEDictionary, n, false}, {format.Plain, 2 * n, false}, delta(n),
		}},
		{"rhythm in bytes", true, [][]int64{of("rhythm"), of("rhythm")}, []page{delta(n), delta(n)}},
		{"steps as literals", true, [][]int64{of("steps"), of("steps")}, []page{{format.DeltaBinaryPacked, n, true}, {format.DeltaBinaryPacked, n, true}}},
		{"random steps as literals", true, [][]int64{of("gauge"), of("gauge")}, []page{{format.DeltaBinaryPacked, n, true}, {format.DeltaBinaryPacked, n, true}}},
		{"steps tightly", false, [][]int64{of("steps"), of("steps")}, []page{delta(2 * n)}},
		{"small series share", false, [][]int64{of("walk"), {1}, {2, 3}, {4}}, []page{delta(n + 4)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var vals []int64
			var ends []int
			for _, s := range tc.series {
				vals = append(vals, s...)
				ends = append(ends, len(vals))
			}
			chunk, err := newTestPages(t, tc.bytes).lay(vals, ends, nil)
			require.NoError(t, err)
			var got []page
			for _, p := range chunk.Pages {
				got = append(got, page{p.Encoding, p.Values, p.Literals})
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestPagesOfShortSeries(t *testing.T) {
	const n = 60
	r := rand.New(rand.NewPCG(1, 1))
	var vals []int64
	var ends []int
	var metrics []uint32
	for metric, lengths := range [][]int{slices.Repeat([]int{n}, 100), slices.Repeat([]int{n}, 10), {n, n}, {720, 720}, {n, 720, 720}} {
		for _, length := range lengths {
			vals = append(vals, intKinds["steps"](r, length)...)
			ends, metrics = append(ends, len(vals)), append(metrics, uint32(metric))
		}
	}
	for _, tc := range []struct {
		name string
		skip int
		want []int
	}{
		{"a unit ends with its metric", tryAll, []int{69 * n, 31 * n, 10 * n, 2*n + 2*720, n + 2*720}},
		{"of a part it does not", partSkip, append(slices.Repeat([]int{18 * n}, 6), 4*n+2*720, n+2*720)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newTestPages(t, true)
			p.skip = tc.skip
			chunk, err := p.lay(vals, ends, metrics)
			require.NoError(t, err)
			var got []int
			for _, page := range chunk.Pages {
				got = append(got, page.Values)
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func BenchmarkPages(b *testing.B) {
	for name, kind := range intKinds {
		b.Run("kind="+name, func(b *testing.B) {
			const series, n = 40, 720
			r := rand.New(rand.NewPCG(1, 1))
			var vals []int64
			var ends []int
			for range series {
				vals = append(vals, kind(r, n)...)
				ends = append(ends, len(vals))
			}
			p := newTestPages(b, false)
			for b.Loop() {
				_, err := p.lay(vals, ends, nil)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(vals)), "ns/sample")
		})
	}
}
