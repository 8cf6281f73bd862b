package datadog_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/datadog"
)

// sketches are as github.com/DataDog/agent-payload/v5 v5.0.215 writes them.
const sketches = "\n\x97\x01\n\alatency\x12\x05web01\"\benv:prod\"\x04bare:>\b\x80\xe2Ϫ\x06\x10\t\x19\x00\x00\x00\x00\x00\x00\xf0\xbf!\x00\x00\x00\x00\x00\x00\x00@)\x00\x00\x00\x00\x00\x00\xf0?1\x00\x00\x00\x00\x00\x00\x1e@:\t\xf3\x14\x00\xf4\x14\xf6\x14\xce\x15B\x05\x01\x02\x03\x01\x02:3\b\x8a\xe2Ϫ\x06\x10\x01\x19\x00\x00\x00\x00\x00\x00\xf0?!\x00\x00\x00\x00\x00\x00\xf0?)\x00\x00\x00\x00\x00\x00\xf0?1\x00\x00\x00\x00\x00\x00\xf0?:\x02\xf4\x14B\x01\x01B\x00\n\a\n\x05empty\x12\x00"

func TestSketches(t *testing.T) {
	g := remotewrite.NewGeneration(1)
	for range 2 { // unknown series, then known ones
		b, err := decode(t, g, datadog.Request{Body: []byte(sketches), Form: datadog.Sketches})
		require.NoError(t, err)
		require.NoError(t, b.Err)
		require.Len(t, b.Hists, 2)
		const labels = `{__name__="latency", __temporality__="delta", bare="no_label_value", env="prod", host="web01"}`
		require.Equal(t, []string{
			labels + " {count:9, sum:7.5, [-1,-0.9785720620876999):1, [-1e-09,1e-09]:2, (0.9785720620876999,1]:3, (1,1.0218971486541166]:1, (2,2.0437942973082333]:2} @0",
			labels + " {count:1, sum:1, (0.9785720620876999,1]:1} @10",
		}, samples(b))
		require.Equal(t, histogram.GaugeType, b.Hists[0].H.CounterResetHint, "what one interval has, and not a counter")
		b.Release()
	}
	for end := 1; end < len(sketches); end++ {
		b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.Sketches, Body: []byte(sketches[:end])})
		if err == nil {
			require.NoError(t, b.Err, "a message of whole series")
			continue
		}
		require.ErrorIs(t, err, datadog.ErrInvalid, end)
	}
}

// sketchOf is a payload of one sketch of the metric m.
func sketchOf(keys []int32, counts []uint32) []byte {
	var k, n []byte
	for _, key := range keys {
		k = protowire.AppendVarint(k, protowire.EncodeZigZag(int64(key)))
	}
	for _, c := range counts {
		n = protowire.AppendVarint(n, uint64(c))
	}
	field := func(b []byte, num protowire.Number, data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), data)
	}
	dog := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), now/1000)
	dog = field(field(dog, 7, k), 8, n)
	return field(nil, 1, field(field(nil, 1, []byte("m")), 7, dog))
}

// TestSketchOffences cost no other series.
func TestSketchOffences(t *testing.T) {
	for _, tc := range []struct {
		keys   []int32
		counts []uint32
		want   string
	}{
		{[]int32{1, 2}, []uint32{1}, "a sketch has 2 keys of bins and 1 counts"},
		{[]int32{1}, []uint32{0}, "a sketch has no value"},
		{nil, nil, "a sketch has no value"},
		{[]int32{1 << 15}, []uint32{1}, "a bin with the key 32768, want -32767 to 32767"},
		{[]int32{math.MinInt32}, []uint32{1}, "a bin with the key -2147483648"},
		{make([]int32, 20_000), make([]uint32, 20_000), "a sketch has 20000 bins, the limit is 16384"},
	} {
		b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.Sketches, Body: append(sketchOf(tc.keys, tc.counts), sketches...)})
		require.NoError(t, err)
		require.ErrorContains(t, b.Err, tc.want)
		require.Len(t, b.Hists, 2)
		b.Release()
	}
	b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.Sketches, Body: sketchOf([]int32{-32767, 32767, -1, 1}, []uint32{1, 1, 1, 1})})
	require.NoError(t, err)
	require.NoError(t, b.Err)
	require.Equal(t, uint64(4), b.Hists[0].H.Count)
}

// TestQuantilesOfSketches holds that quantiles of the histogram are within 4 % of those of the
// values: 0.8 % of the bin, 2.2 % of the bucket, and what lies between two neighbouring values.
func TestQuantilesOfSketches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var values []float64
	bins := map[int32]uint32{}
	for range 20_000 {
		v := math.Exp(r.NormFloat64()*3 - 2)
		values = append(values, v)
		bins[int32(math.RoundToEven(math.Log(v)/math.Log1p(2.0/128)))+1338]++
	}
	slices.Sort(values)
	var keys []int32
	var counts []uint32
	for k := range bins {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		counts = append(counts, bins[k])
	}
	b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.Sketches, Body: sketchOf(keys, counts)})
	require.NoError(t, err)
	require.NoError(t, b.Err)
	h := b.Hists[0].H
	require.NoError(t, h.Validate())
	require.LessOrEqual(t, len(h.PositiveBuckets), len(keys), "no empty buckets")
	for _, q := range []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999} {
		got, _ := promql.HistogramQuantile(q, h.ToFloat(nil), "m", posrange.PositionRange{})
		require.InEpsilon(t, values[int(q*float64(len(values)))], got, 0.04, fmt.Sprint(q))
	}
}
