package fuzzpromql

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
)

// midnight is within the data, so that every layout divides it into several windows.
var midnight = time.Date(2023, time.November, 14, 0, 0, 0, 0, time.UTC)

const reach = 80 * time.Minute // range of the data before and after midnight

func dataStart() int64 { return midnight.Add(-reach).UnixMilli() }
func dataEnd() int64   { return midnight.Add(reach).UnixMilli() }

// stale is the value that ends a series.
var stale = math.Float64frombits(value.StaleNaN)

// data is the stored data: series in order of their labels, with samples in order of time.
type data []segment.Row

// newData generates the data of a seed. Label sets of metrics overlap but are not equal. Every
// eighth seed has more series than a DuckDB vector has rows, with few samples each.
func newData(seed uint64) data {
	rng := rand.New(rand.NewPCG(seed, 1))
	var d data
	if seed%8 == 7 {
		d = wide(rng)
	}
	add := func(values func(*rand.Rand) func() float64, lset ...string) {
		d = append(d, segment.Row{Labels: labels.FromStrings(lset...), Floats: floats(rng, values(rng))})
	}
	const name = model.MetricNameLabel
	for g := range 3 {
		for i := range 3 {
			gv, iv := fmt.Sprintf("g%d", g), fmt.Sprintf("i%d", i)
			add(counter, name, "c_total", "g", gv, "i", iv)
			if rng.IntN(5) > 0 {
				add(counter, name, "d_total", "g", gv, "i", iv)
			}
			if rng.IntN(5) > 0 {
				add(gauge, name, "m", "g", gv, "i", iv, "x", fmt.Sprint(i%2))
			}
			add(integers, name, "n", "g", gv, "i", iv)
		}
		add(odd, name, "odd", "g", fmt.Sprintf("g%d", g), "x", "0")
		add(ones, name, "info", "g", fmt.Sprintf("g%d", g), "version", fmt.Sprintf("v%d", rng.IntN(3)))
		add(ones, name, "target_info", "instance", fmt.Sprintf("i%d", g), "job", "j", "os", "linux")
		add(counter, name, "jobs_total", "instance", fmt.Sprintf("i%d", g), "job", "j")
	}
	add(gauge, name, "lonely")
	add(gauge, "g", "g0", "i", "i0")
	d = append(d, classic(rng)...)
	d = append(d, natives(rng)...)
	slices.SortFunc(d, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
	return d
}

// wide generates many series with few samples.
func wide(rng *rand.Rand) (d data) {
	const most = 3000
	for i := range most {
		at := midnight.UnixMilli() - rng.Int64N(600_000)
		r := segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "c_total", "g", fmt.Sprintf("g%d", i%3), "i", fmt.Sprintf("w%d", i))}
		for next := counter(rng); at < midnight.UnixMilli()+600_000; at += 120_000 {
			r.Floats = append(r.Floats, segment.Float{T: at, V: next()})
		}
		d = append(d, r)
	}
	return d
}

// times generates the times of a series' samples: at a fixed interval, jittered or not, with gaps.
func times(rng *rand.Rand) (ts []int64) {
	interval := []int64{15_000, 30_000, 60_000, 61_500}[rng.IntN(4)]
	jitter := rng.IntN(2) == 0
	gaps := rng.IntN(3) == 0
	t := dataStart() + rng.Int64N(interval)
	if rng.IntN(2) == 0 { // at multiples of the interval, where ranges and lookbacks begin and end
		t = dataStart()
	}
	if rng.IntN(6) == 0 { // it begins late
		t += rng.Int64N(reach.Milliseconds())
	}
	for ; t < dataEnd(); t += interval {
		if gaps && rng.IntN(40) == 0 {
			t += rng.Int64N(20 * 60_000)
		}
		at := min(t, dataEnd())
		if jitter {
			at += rng.Int64N(200)
		}
		ts = append(ts, at)
	}
	return ts
}

// floats generates the samples of a series, which may end and start again.
func floats(rng *rand.Rand, next func() float64) (out []segment.Float) {
	ends := rng.IntN(3) == 0
	for _, t := range times(rng) {
		v := next()
		if ends && rng.IntN(50) == 0 {
			v = stale
		}
		out = append(out, segment.Float{T: t, V: v})
	}
	return out
}

func counter(rng *rand.Rand) func() float64 {
	v, unit := float64(rng.IntN(1000)), []float64{1, 1, 0.25, 0.1}[rng.IntN(4)]
	return func() float64 {
		switch rng.IntN(60) {
		case 0:
			v = 0
		case 1: // pauses
		default:
			v += float64(rng.IntN(20)) * unit
		}
		return v
	}
}

func gauge(rng *rand.Rand) func() float64 {
	special := rng.IntN(4) == 0
	return func() float64 {
		if special && rng.IntN(25) == 0 {
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[rng.IntN(4)]
		}
		return math.Round(rng.NormFloat64()*1e5) / 1e3
	}
}

func integers(rng *rand.Rand) func() float64 {
	return func() float64 { return float64(rng.IntN(7) - 3) }
}

func ones(*rand.Rand) func() float64 { return func() float64 { return 1 } }

// odd generates values from all corners of float64.
func odd(rng *rand.Rand) func() float64 {
	return func() float64 {
		switch rng.IntN(8) {
		case 0:
			return math.Float64frombits(rng.Uint64N(1 << 52)) // subnormal
		case 1:
			return math.MaxFloat64 / float64(1+rng.IntN(4))
		case 2:
			return -math.MaxFloat64 / float64(1+rng.IntN(4))
		case 3:
			return rng.Float64() * 1e-300
		case 4:
			return float64(int64(1)<<53 + rng.Int64N(5))
		default:
			return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(30)-15))
		}
	}
}

// classic generates histograms of buckets. One of them has bounds in two spellings, and one is not
// monotonic.
func classic(rng *rand.Rand) (d data) {
	bounds := []string{"0.1", "0.5", "1", "+Inf"}
	for g := range 3 {
		ts, counts := times(rng), make([]float64, len(bounds))
		rows := make(data, len(bounds)+1)
		for i, le := range append(slices.Clone(bounds), "1.0") {
			rows[i].Labels = labels.FromStrings(model.MetricNameLabel, "h_bucket", "g", fmt.Sprintf("g%d", g), "le", le)
		}
		for _, t := range ts {
			seen := 0.0
			for i := range bounds {
				seen += float64(rng.IntN(4))
				counts[i] += seen
				v := counts[i]
				if g == 2 && rng.IntN(10) == 0 {
					v -= 3
				}
				rows[i].Floats = append(rows[i].Floats, segment.Float{T: t, V: v})
			}
			rows[len(bounds)].Floats = append(rows[len(bounds)].Floats, segment.Float{T: t, V: counts[2]})
		}
		if g != 1 {
			rows = rows[:len(bounds)]
		}
		d = append(d, rows...)
	}
	return d
}

// natives generates native histograms, and a series with floats and histograms.
func natives(rng *rand.Rand) (d data) {
	for g := range 2 {
		r := segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "nh", "g", fmt.Sprintf("g%d", g))}
		for i, t := range times(rng) {
			r.Hists = append(r.Hists, segment.Hist{T: t, FH: tsdbutil.GenerateTestFloatHistogram(int64(i))})
		}
		d = append(d, r)
	}
	mixed := segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "both", "g", "g0")}
	for i, t := range times(rng) {
		if i/20%2 == 0 {
			mixed.Floats = append(mixed.Floats, segment.Float{T: t, V: float64(i)})
		} else {
			mixed.Hists = append(mixed.Hists, segment.Hist{T: t, H: tsdbutil.GenerateTestHistogram(int64(i))})
		}
	}
	return append(d, mixed)
}

// upstream stores the data as Prometheus does.
func (d data) upstream(t *testing.T) *teststorage.TestStorage {
	t.Helper()
	st := teststorage.New(t)
	type place struct{ float, hist int }
	app := st.AppenderV2(t.Context())
	at := make([]place, len(d))
	// the head requires the samples of all series in approximate order of time
	for t0 := dataStart(); t0 <= dataEnd()+1000; t0 += 600_000 {
		for i := range d {
			for p := &at[i]; p.float < len(d[i].Floats) && d[i].Floats[p.float].T < t0+600_000 || p.hist < len(d[i].Hists) && d[i].Hists[p.hist].T < t0+600_000; {
				var err error
				if p.hist == len(d[i].Hists) || p.float < len(d[i].Floats) && d[i].Floats[p.float].T < d[i].Hists[p.hist].T {
					_, err = app.Append(0, d[i].Labels, 0, d[i].Floats[p.float].T, d[i].Floats[p.float].V, nil, nil, storage.AOptions{})
					p.float++
				} else {
					h := d[i].Hists[p.hist]
					_, err = app.Append(0, d[i].Labels, 0, h.T, 0, h.H, h.FH, storage.AOptions{})
					p.hist++
				}
				require.NoError(t, err)
			}
		}
	}
	require.NoError(t, app.Commit())
	return st
}
