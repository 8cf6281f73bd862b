package promblock_test

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/senders/promblock"
)

// histogramChunks returns a chunk of each encoding of histograms, with one sample.
func histogramChunks(t *testing.T, h *histogram.Histogram) (out []chunkenc.Chunk) {
	t.Helper()
	for _, e := range []chunkenc.Encoding{chunkenc.EncHistogram, chunkenc.EncFloatHistogram, chunkenc.EncHistogramST, chunkenc.EncFloatHistogramST} {
		c, err := chunkenc.NewEmptyChunk(e)
		require.NoError(t, err)
		app, err := c.Appender()
		require.NoError(t, err)
		if e == chunkenc.EncHistogram || e == chunkenc.EncHistogramST {
			_, _, _, err = app.AppendHistogram(nil, 0, 1, h, false)
		} else {
			_, _, _, err = app.AppendFloatHistogram(nil, 0, 1, h.ToFloat(nil), false)
		}
		require.NoError(t, err)
		out = append(out, c)
	}
	return out
}

// TestCheckBuckets holds that chunks of upstream's appenders pass, and that they do not when they
// are too short for their buckets.
func TestCheckBuckets(t *testing.T) {
	const buckets = 4096
	many := &histogram.Histogram{
		Schema: 3, ZeroThreshold: math.Pi, Count: 7, ZeroCount: 7,
		PositiveSpans: []histogram.Span{{Offset: -70, Length: buckets / 2}, {Offset: 3, Length: 1}}, PositiveBuckets: make([]int64, buckets/2+1),
		NegativeSpans: []histogram.Span{{Offset: 1 << 20, Length: buckets / 2}}, NegativeBuckets: make([]int64, buckets/2),
	}
	for name, h := range map[string]*histogram.Histogram{
		"none":   {Count: 1, ZeroCount: 1},
		"custom": {Schema: histogram.CustomBucketsSchema, Count: 3, CustomValues: []float64{1, 2.5}, PositiveSpans: []histogram.Span{{Length: 3}}, PositiveBuckets: []int64{1, 0, 0}},
		"many":   many,
	} {
		for _, c := range histogramChunks(t, h) {
			require.NoError(t, promblock.CheckBuckets(c), "%s %s", name, c.Encoding())
		}
	}
	for _, c := range histogramChunks(t, many) {
		cut, err := chunkenc.FromData(c.Encoding(), c.Bytes()[:buckets/16])
		require.NoError(t, err)
		require.ErrorContains(t, promblock.CheckBuckets(cut), "its spans have more than 2048 buckets, the limit of a chunk of 256 bytes", c.Encoding())
		cut, err = chunkenc.FromData(c.Encoding(), c.Bytes()[:6])
		require.NoError(t, err)
		require.Error(t, promblock.CheckBuckets(cut), "the layout is cut")
	}
	floats := chunkenc.NewXORChunk()
	require.NoError(t, promblock.CheckBuckets(floats))
}
