package rollup_test

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

var stale = math.Float64frombits(value.StaleNaN)

// memFiles keeps what is written by name.
type memFiles map[string]*memFile

type memFile struct {
	bytes.Buffer
	closed bool
}

func (f *memFile) Close() error { f.closed = true; return nil }

func (m memFiles) Create(name string) (io.WriteCloser, error) {
	m[name] = &memFile{}
	return m[name], nil
}

// read returns the rows of a file.
func (m memFiles) read(t *testing.T, name string) (rows []rollup.Record) {
	t.Helper()
	require.Contains(t, m, name)
	require.True(t, m[name].closed)
	r, err := rollup.OpenReader(bytes.NewReader(m[name].Bytes()), int64(m[name].Len()))
	require.NoError(t, err)
	require.NoError(t, r.Each(func(rec rollup.Record) error {
		rows = append(rows, rec)
		return nil
	}))
	return rows
}

// samples is one series.
type samples struct {
	ts []int64
	v  []float64
}

// values are the ways in which a series goes on from its last value.
var values = map[string]func(rng *rand.Rand, last float64) float64{
	"counter of whole numbers": func(rng *rand.Rand, last float64) float64 {
		if rng.IntN(40) == 0 {
			return float64(rng.IntN(5))
		}
		return last + float64(rng.IntN(1000))
	},
	"counter of decimals": func(rng *rand.Rand, last float64) float64 {
		if rng.IntN(150) == 0 {
			return 0
		}
		return math.Round((last+rng.Float64())*100) / 100
	},
	"gauge of decimals": func(rng *rand.Rand, _ float64) float64 { return float64(rng.IntN(2000)-1000) / 10 },
	"few values":        func(rng *rand.Rand, _ float64) float64 { return float64(rng.IntN(3)) },
	"large whole":       func(rng *rand.Rand, _ float64) float64 { return math.Trunc(rng.NormFloat64() * 1e17) },
	"any finite":        func(rng *rand.Rand, _ float64) float64 { return math.Ldexp(rng.NormFloat64(), rng.IntN(600)-300) },
	"near the largest":  func(rng *rand.Rand, _ float64) float64 { return (rng.Float64() - 0.3) * math.MaxFloat64 },
	"zeros of both kind": func(rng *rand.Rand, _ float64) float64 {
		return math.Copysign(float64(rng.IntN(2)*rng.IntN(2)), rng.Float64()-0.5)
	},
	"all kinds": func(rng *rand.Rand, last float64) float64 {
		special := []float64{math.NaN(), math.Float64frombits(0xfff8000000000123), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), stale, 1.5}
		if i := rng.IntN(3 * len(special)); i < len(special) {
			return special[i]
		}
		return last
	},
	"mostly stale": func(rng *rand.Rand, _ float64) float64 {
		if rng.IntN(3) > 0 {
			return stale
		}
		return float64(rng.IntN(10))
	},
	"mostly NaN": func(rng *rand.Rand, _ float64) float64 {
		if rng.IntN(4) > 0 {
			return math.Float64frombits(0x7ff8000000000000 | rng.Uint64()&0xff<<8)
		}
		return rng.NormFloat64()
	},
}

// randomSeries returns up to n samples from around begin (ms) on: every 10 s, on the second or off
// it, or irregularly, with gaps.
func randomSeries(rng *rand.Rand, begin int64, n int, next func(*rand.Rand, float64) float64) samples {
	var (
		s         samples
		last      float64
		t         = begin + int64(rng.IntN(2)*rng.IntN(10_000))
		irregular = rng.IntN(3) == 0
	)
	for range n {
		v := next(rng, last)
		if v == v {
			last = v
		}
		s.ts, s.v = append(s.ts, t), append(s.v, v)
		switch {
		case rng.IntN(100) == 0:
			t += int64(rng.IntN(7_200_000))/10_000*10_000 + 10_000
		case irregular:
			t += 1 + int64(rng.IntN(60_000))
		default:
			t += 10_000
		}
	}
	return s
}
