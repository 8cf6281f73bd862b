package rollup_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

type discard struct{}

func (discard) Create(string) (io.WriteCloser, error) { return discard{}, nil }
func (discard) Write(p []byte) (int, error)           { return len(p), nil }
func (discard) Close() error                          { return nil }

// A day of 10-second samples a series. Read ns/op as nanoseconds a sample.
func BenchmarkAppend(b *testing.B) {
	const n = 8640
	for _, kind := range []string{"constant", "counter", "gauge"} {
		b.Run(fmt.Sprintf("values=%s", kind), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			ts, v := make([]int64, n), make([]float64, n)
			for i := range ts {
				ts[i] = 1_772_496_001_234 + int64(i)*10_000
				switch kind {
				case "counter":
					v[i] = math.Round(rng.ExpFloat64() * 100)
					if i > 0 {
						v[i] += v[i-1]
					}
				case "gauge":
					v[i] = float64(rng.IntN(10_000)) / 100
				}
			}
			w, err := rollup.NewFullWriter(discard{})
			require.NoError(b, err)
			b.ReportAllocs()
			for done := 0; done < b.N; done += n {
				require.NoError(b, w.Append("m", uint64(done), ts, v, nil))
			}
			_, err = w.Close()
			require.NoError(b, err)
		})
	}
}
