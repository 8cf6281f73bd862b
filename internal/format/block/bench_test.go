package block_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
)

// discard counts the bytes of a block's files.
type discard struct{ bytes int64 }

func (d *discard) Create(string) (io.WriteCloser, error) { return d, nil }
func (d *discard) Write(p []byte) (int, error)           { d.bytes += int64(len(p)); return len(p), nil }
func (d *discard) Close() error                          { return nil }

// BenchmarkWriter writes blocks of 1M samples of mixed series; ns/sample is what counts.
func BenchmarkWriter(b *testing.B) {
	const samples = 1 << 20
	for _, perSeries := range []int{8, 720, 8640} {
		rng := rand.New(rand.NewPCG(1, 1))
		var in []input
		for i := range samples / perSeries {
			in = append(in, input{labelsOf(i), block.Samples{TS: stamps(0, 10_000, perSeries), V: benchValues(rng, i, perSeries)}})
		}
		v, refs, by := intern(b, in)
		for _, level := range key.Levels {
			b.Run(fmt.Sprintf("level=%s/series=%d", level, perSeries), func(b *testing.B) {
				b.ReportAllocs()
				var out discard
				for b.Loop() {
					w, err := block.NewWriter(&out, v, block.Options{Level: level, Floats: samples})
					require.NoError(b, err)
					_, err = fill(w, refs, by, nil, block.Header{})
					require.NoError(b, err)
				}
				n := float64(b.N) * float64(len(refs)*perSeries)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/sample")
				b.ReportMetric(float64(out.bytes)/n, "B/sample")
			})
		}
	}
}

// benchValues makes a series as machines have them: constants, counters, gauges with decimals, and
// durations.
func benchValues(rng *rand.Rand, kind, n int) []float64 {
	out := make([]float64, n)
	at := float64(rng.IntN(1 << 20))
	for i := range out {
		switch kind % 5 {
		case 0:
			out[i] = at
		case 1:
			at += float64(rng.IntN(50))
			out[i] = at
		case 2:
			out[i] = float64(rng.IntN(400)) / 100
		case 3:
			at += float64(4096 * (rng.IntN(5) - 2))
			out[i] = at
		default:
			out[i] = float64(20_000+rng.IntN(5000)) / 1e9
		}
	}
	return out
}
