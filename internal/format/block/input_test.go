package block_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// input is one series to be written.
type input struct {
	labels labels.Labels
	block.Samples
}

// intern puts the label sets of inputs into a table and returns its view and the inputs in block
// order, by reference.
func intern(t testing.TB, inputs []input) (*series.View, []series.Ref, map[series.Ref]*input) {
	t.Helper()
	table := series.NewTable(1)
	refs := make([]series.Ref, len(inputs))
	by := map[series.Ref]*input{}
	for i := range inputs {
		var lset []series.Label
		inputs[i].labels.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
		ref, err := table.Intern(lset)
		require.NoError(t, err)
		refs[i], by[ref] = ref, &inputs[i]
	}
	require.Len(t, by, len(inputs), "label sets differ")
	v := table.View()
	slices.SortFunc(refs, func(a, b series.Ref) int { return series.ComparePriority(&v, a, b) })
	return &v, refs, by
}

// write writes a block of inputs, in any order, and returns its files and its meta.json.
func write(t testing.TB, inputs []input, meta []segment.Metadata, o block.Options, h block.Header) (*memFiles, block.Meta) {
	t.Helper()
	files := newMemFiles(t)
	v, refs, by := intern(t, inputs)
	w, err := block.NewWriter(files, v, o)
	require.NoError(t, err)
	m, err := fill(w, refs, by, meta, h)
	require.NoError(t, err)
	return files, m
}

// fill drives a writer from the first series to the end.
func fill(w *block.Writer, refs []series.Ref, by map[series.Ref]*input, meta []segment.Metadata, h block.Header) (block.Meta, error) {
	for _, r := range refs {
		if err := w.Append(r, &by[r].Samples); err != nil {
			return block.Meta{}, err
		}
	}
	if meta != nil {
		if err := w.Metadata(meta); err != nil {
			return block.Meta{}, err
		}
	}
	return w.Close(h)
}

// everything is a block with all that a block can hold.
func everything() []input {
	stale := math.Float64frombits(value.StaleNaN)
	odd := []float64{1, 0.1, stale, math.Inf(1), math.Copysign(0, -1), math.Float64frombits(0x7ff0dead_beef0001), 12.233999999999998, math.Pi, 1 << 60}
	in := []input{
		{labels.FromStrings("__name__", "up", "job", "node", "instance", "a:9100"), block.Samples{TS: []int64{1000, 2000, 3000}, V: odd[:3], ST: []int64{0, 500, 0}}},
		{labels.FromStrings("__name__", "up", "job", "node", "instance", "b:9100", "Zone", "eu", "ünï", "çödé"), block.Samples{TS: stamps(1000, 7, 6), V: odd[3:]}},
		{labels.FromStrings("__name__", "rpc_seconds", "job", "api"), block.Samples{
			Hists: []segment.Hist{
				{T: 1500, H: tsdbutil.GenerateTestHistogram(3)},
				{T: 2500, ST: 7, FH: tsdbutil.GenerateTestFloatHistogram(4)},
				{T: 2600, FH: &histogram.FloatHistogram{Sum: stale}},
			},
			Exemplars: []exemplar.Exemplar{{Ts: 1400, HasTs: true, Value: 0.25, Labels: labels.FromStrings("trace_id", `q"1`)}},
		}},
		{labels.FromStrings("job", "nameless"), block.Samples{TS: []int64{1}, V: []float64{42}}},
		{labels.FromStrings("__name__", "mixed"), block.Samples{
			TS: []int64{10}, V: []float64{1}, Hists: []segment.Hist{{T: 10, H: tsdbutil.GenerateTestHistogram(1)}},
			Exemplars: []exemplar.Exemplar{{Ts: 5, HasTs: true, Value: 1}, {Ts: 6, HasTs: true, Value: 2}},
		}},
	}
	for i := range 12 {
		v := make([]float64, 20)
		for j := range v {
			v[j] = float64(i*j) / []float64{1, 10, 3, 4}[i%4]
		}
		in = append(in, input{labels.FromStrings("__name__", "cpu", "cpu", fmt.Sprint(i%4), "mode", fmt.Sprint(i), "cluster", fmt.Sprint(i%3)), block.Samples{TS: stamps(1000, 500, 20), V: v}})
	}
	return in
}

// stamps returns n timestamps.
func stamps(from, step int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = from + int64(i)*step
	}
	return out
}

var someMetadata = []segment.Metadata{{Metric: "rpc_seconds", Type: "histogram", Help: "Time of a call.", Unit: "seconds"}, {Metric: "up", Type: "gauge"}}

// randomInputs makes n series of all kinds, of up to maxSamples samples.
func randomInputs(rng *rand.Rand, n, maxSamples int) []input {
	var out []input
	seen := map[string]bool{}
	names := []string{"instance", "job", "cluster", "namespace", "a", "z", "Zone", "dotted.name"}
	for len(out) < n {
		b := labels.NewBuilder(labels.EmptyLabels())
		if rng.IntN(10) > 0 {
			b.Set(model.MetricNameLabel, fmt.Sprintf("m%d", rng.IntN(20)))
		}
		for range rng.IntN(6) {
			b.Set(names[rng.IntN(len(names))], fmt.Sprint(rng.IntN(30)))
		}
		in := input{labels: b.Labels()}
		if in.labels.IsEmpty() || seen[in.labels.String()] {
			continue
		}
		seen[in.labels.String()] = true
		in.Samples = randomSamples(rng, maxSamples)
		out = append(out, in)
	}
	return out
}

func randomSamples(rng *rand.Rand, most int) (s block.Samples) {
	from := rng.Int64N(1e6)
	for i := range rng.IntN(most + 1) {
		s.TS = append(s.TS, from+int64(i)*1000+rng.Int64N(1000))
	}
	s.V = randomValues(rng, len(s.TS))
	if rng.IntN(4) == 0 {
		for range s.TS {
			s.ST = append(s.ST, rng.Int64N(2)*from)
		}
	}
	if rng.IntN(4) == 0 {
		for i := range 1 + rng.IntN(5) {
			s.Hists = append(s.Hists, segment.Hist{T: from + int64(i), H: tsdbutil.GenerateTestHistogram(int64(i))})
		}
	}
	if rng.IntN(4) == 0 {
		for i := range 1 + rng.IntN(5) {
			s.Exemplars = append(s.Exemplars, exemplar.Exemplar{Ts: from + int64(i/2), HasTs: true, Value: rng.Float64(), Labels: labels.FromStrings("trace_id", fmt.Sprint(rng.Uint64()))})
		}
	}
	return s
}

// randomValues makes the values of a series: a counter, decimals, noise, a constant, or any bits.
func randomValues(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	kind, at := rng.IntN(5), float64(rng.IntN(1e6))
	for i := range out {
		switch kind {
		case 0:
			at += float64(rng.IntN(100))
			out[i] = at
		case 1:
			out[i] = float64(rng.IntN(1e9)) / 1000
		case 2:
			at += float64(rng.IntN(100)) / 7
			out[i] = at
		case 3:
			out[i] = at
		default:
			out[i] = math.Float64frombits(rng.Uint64())
		}
	}
	return out
}

func randomBits(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Float64frombits(rng.Uint64())
	}
	return out
}

// labelsOf is the i-th of label sets that ascend in block order.
func labelsOf(i int) labels.Labels {
	return labels.FromStrings("__name__", "m", "instance", fmt.Sprintf("%04d", i))
}
