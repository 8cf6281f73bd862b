package segment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/segment"
)

// oddFloats are values that a careless encoding would change.
var oddFloats = []float64{
	0, math.Copysign(0, -1), 1, 0.1, 12.233999999999998, math.Pi, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
	math.Float64frombits(value.StaleNaN), math.Float64frombits(value.NormalNaN), math.Float64frombits(0xfff8dead_beef0001), math.Float64frombits(0x7ff00000_00000001),
}

// oddNames are label names of every kind, with and without a column of their own.
var oddNames = []string{
	"a", "instance", "job", "job2", "_x", "__y", "zone", "Zone", "ZONE", "9lives", "dotted.name", "with space", "ünï", `quo"te`, "semi;colon", strings.Repeat("long", 40),
}

var oddValues = []string{"0", "a", "A", "b c", "çödé", "\x00", "\n", `"`, "'", "￿", strings.Repeat("v", 3000)}

// random generates the rows of random segments.
type random struct {
	*rand.Rand
	names  []string
	minT   int64
	plain  bool // floats only
	values []float64
}

func (r random) rows(n int) []segment.Row {
	seen := map[string]bool{}
	var rows []segment.Row
	for len(rows) < n {
		lset := r.labels()
		if seen[lset.String()] {
			continue
		}
		seen[lset.String()] = true
		row := segment.Row{Labels: lset, Floats: r.floats()}
		if !r.plain && r.IntN(3) == 0 {
			row.Hists = r.hists()
		}
		if !r.plain && r.IntN(3) == 0 {
			row.Exemplars = r.exemplars()
		}
		rows = append(rows, row)
	}
	return rows
}

func (r random) labels() labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	if r.IntN(10) > 0 {
		b.Set(model.MetricNameLabel, []string{"up", "cpu", "ünï.metric", "Up", fmt.Sprintf("m%d", r.IntN(1000))}[r.IntN(5)])
	}
	for range r.IntN(6) {
		b.Set(r.names[r.IntN(len(r.names))], oddValues[r.IntN(len(oddValues))])
	}
	return b.Labels()
}

// times returns n ascending timestamps.
func (r random) times(n int) []int64 {
	at := r.minT + r.Int64N(1000)
	out := make([]int64, n)
	for i := range out {
		out[i] = at
		at += 1 + r.Int64N(30_000)
	}
	return out
}

func (r random) float() float64 {
	if r.IntN(2) == 0 {
		return math.Float64frombits(r.Uint64())
	}
	return r.values[r.IntN(len(r.values))]
}

func (r random) floats() []segment.Float {
	var out []segment.Float
	withST := !r.plain && r.IntN(4) == 0
	for _, t := range r.times(r.IntN(5) * r.IntN(5)) {
		f := segment.Float{T: t, V: r.float()}
		if withST {
			f.ST = r.minT
		}
		out = append(out, f)
	}
	return out
}

func (r random) exemplars() []exemplar.Exemplar {
	var out []exemplar.Exemplar
	for _, t := range r.times(r.IntN(4)) {
		out = append(out, exemplar.Exemplar{Ts: t, HasTs: true, Value: r.float(), Labels: labels.FromStrings("trace_id", fmt.Sprint(r.Uint64()), oddNames[r.IntN(len(oddNames))], oddValues[r.IntN(len(oddValues))])})
	}
	return out
}

func (r random) hists() []segment.Hist {
	var out []segment.Hist
	for _, t := range r.times(r.IntN(4)) {
		h := segment.Hist{T: t, ST: r.Int64N(2) * r.minT}
		schema := int32(r.IntN(14)) - 5
		if schema == -5 {
			schema = histogram.CustomBucketsSchema
		}
		if fh := r.floatHist(schema); r.IntN(2) == 0 {
			h.FH = fh
		} else {
			h.H = r.intHist(fh)
		}
		out = append(out, h)
	}
	return out
}

func (r random) floatHist(schema int32) *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{Schema: schema, Sum: r.float(), CounterResetHint: histogram.CounterResetHint(r.IntN(4))}
	if r.IntN(5) == 0 {
		h.Sum = math.Float64frombits(value.StaleNaN)
		return h
	}
	side := func() ([]histogram.Span, []float64) {
		var spans []histogram.Span
		var buckets []float64
		for range 1 + r.IntN(3) {
			s := histogram.Span{Offset: int32(r.IntN(3)), Length: 1 + r.Uint32N(4)}
			spans = append(spans, s)
			for range s.Length {
				buckets = append(buckets, float64(r.IntN(1000)))
			}
		}
		return spans, buckets
	}
	h.PositiveSpans, h.PositiveBuckets = side()
	if schema == histogram.CustomBucketsSchema {
		h.CustomValues = []float64{math.Inf(-1), -1, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16}
	} else {
		h.NegativeSpans, h.NegativeBuckets = side()
		h.ZeroCount, h.ZeroThreshold = float64(r.IntN(9)), 1e-128
	}
	h.Count = h.ZeroCount
	for _, b := range slices.Concat(h.PositiveBuckets, h.NegativeBuckets) {
		h.Count += b
	}
	return h
}

// intHist converts a float histogram to an integer one.
func (r random) intHist(fh *histogram.FloatHistogram) *histogram.Histogram {
	deltas := func(counts []float64) []int64 {
		var out []int64
		last := int64(0)
		for _, c := range counts {
			out, last = append(out, int64(c)-last), int64(c)
		}
		return out
	}
	return &histogram.Histogram{
		Schema: fh.Schema, Sum: fh.Sum, CounterResetHint: fh.CounterResetHint, CustomValues: fh.CustomValues,
		Count: uint64(fh.Count), ZeroCount: uint64(fh.ZeroCount), ZeroThreshold: fh.ZeroThreshold,
		PositiveSpans: fh.PositiveSpans, PositiveBuckets: deltas(fh.PositiveBuckets),
		NegativeSpans: fh.NegativeSpans, NegativeBuckets: deltas(fh.NegativeBuckets),
	}
}
