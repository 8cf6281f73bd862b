// Package promblocktest writes blocks with upstream's TSDB and reads them with upstream's querier,
// for tests.
package promblocktest

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"
)

// Sample is one sample of a series.
type Sample struct {
	Time int64
	V    float64
	H    *histogram.Histogram
	FH   *histogram.FloatHistogram
}

// Series is one series with samples in the order of time.
type Series struct {
	Labels  labels.Labels
	Samples []Sample
}

// Write writes one block with the samples of [from, to) below dir and returns its directory.
func Write(t testing.TB, dir string, from, to int64, all []Series) string {
	t.Helper()
	var list []storage.Series
	for _, s := range all {
		var part []chunks.Sample
		for _, x := range s.Samples {
			if x.Time >= from && x.Time < to {
				part = append(part, sample{x})
			}
		}
		if len(part) > 0 {
			list = append(list, storage.NewListSeries(s.Labels, part))
		}
	}
	path, err := tsdb.CreateBlock(list, dir, 4*(to-from), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return path
}

// Blocks are open blocks as upstream's storage.
type Blocks []*tsdb.Block

// Queryable returns upstream's view of the blocks at these directories.
func Queryable(t testing.TB, dirs ...string) Blocks {
	t.Helper()
	var blocks Blocks
	for _, dir := range dirs {
		b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, nil, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		blocks = append(blocks, b)
	}
	return blocks
}

// Querier implements storage.Queryable.
func (bs Blocks) Querier(mint, maxt int64) (storage.Querier, error) {
	var all []storage.Querier
	for _, b := range bs {
		q, err := tsdb.NewBlockQuerier(b, mint, maxt)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return storage.NewMergeQuerier(all, nil, storage.ChainedSeriesMerge), nil
}

// ChunkQuerier implements storage.ChunkQueryable.
func (bs Blocks) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	var all []storage.ChunkQuerier
	for _, b := range bs {
		q, err := tsdb.NewBlockChunkQuerier(b, mint, maxt)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return storage.NewMergeChunkQuerier(all, nil, storage.NewCompactingChunkSeriesMerger(storage.ChainedSeriesMerge)), nil
}

// Step is the time between two samples of a series of History, ms.
const Step = 60_000

// History returns series from start (ms) on: counters with resets, gauges of whole numbers and of
// fractions, integer and float native histograms, and a series that changes from floats to
// histograms. All have gaps that begin with stale markers. The same seed gives the same series.
func History(seed uint64, start int64, length time.Duration) []Series {
	r := rand.New(rand.NewPCG(seed, 1))
	n := int(length.Milliseconds() / Step)
	var out []Series
	for i := range 10 {
		instance := string(rune('a' + i%5))
		counter := Series{Labels: labels.FromStrings("__name__", "requests_total", "instance", instance, "job", "api", "kind", string(rune('x'+i/5)))}
		gauge := Series{Labels: labels.FromStrings("__name__", "temperature", "cluster", "west", "instance", instance, "n", string(rune('0'+i)))}
		count, celsius := 0.0, 20.0
		for k := range n {
			at := start + int64(k)*Step + int64(i)*1000
			if r.IntN(300) == 0 {
				count = 0
			}
			count += float64(r.IntN(50))
			celsius += float64(r.IntN(21)-10) / 8
			counter.add(r, at, k, Sample{V: count})
			gauge.add(r, at, k, Sample{V: celsius})
		}
		out = append(out, counter, gauge)
	}
	for i := range 3 {
		instance := string(rune('a' + i))
		whole := Series{Labels: labels.FromStrings("__name__", "latency", "instance", instance, "job", "api")}
		float := Series{Labels: labels.FromStrings("__name__", "sizes", "instance", instance, "job", "api")}
		mixed := Series{Labels: labels.FromStrings("__name__", "changes", "instance", instance)}
		for k := range n {
			at := start + int64(k)*Step + int64(i)*1000
			whole.add(r, at, k, Sample{H: tsdbutil.GenerateTestHistogram(int64(k%700 + i))})
			float.add(r, at, k, Sample{FH: tsdbutil.GenerateTestGaugeFloatHistogram(int64(k + i))})
			if k < n/2 {
				mixed.add(r, at, k, Sample{V: float64(k)})
			} else {
				mixed.add(r, at, k, Sample{H: tsdbutil.GenerateTestHistogram(int64(k))})
			}
		}
		out = append(out, whole, float, mixed)
	}
	slices.SortFunc(out, func(a, b Series) int { return labels.Compare(a.Labels, b.Labels) })
	return out
}

// add adds a sample at a time, the k-th of the series; in gaps a stale marker and then nothing.
func (s *Series) add(r *rand.Rand, at int64, k int, x Sample) {
	x.Time = at
	switch gap := (k + int(at/1000)%7) % 200; {
	case gap > 190:
		return
	case gap == 190:
		stale := math.Float64frombits(value.StaleNaN)
		switch {
		case x.H != nil:
			x.H = &histogram.Histogram{Sum: stale}
		case x.FH != nil:
			x.FH = &histogram.FloatHistogram{Sum: stale}
		default:
			x.V = stale
		}
	case r.IntN(40) == 0 && x.H == nil && x.FH == nil:
		return // a scrape that failed
	}
	s.Samples = append(s.Samples, x)
}

// Part returns the series at even (0) or odd (1) positions.
func Part(all []Series, rest int) (out []Series) {
	for i, s := range all {
		if i%2 == rest {
			out = append(out, s)
		}
	}
	return out
}

// Count returns the number of samples that a querier has.
func Count(t testing.TB, q storage.Querier) (n int64) {
	t.Helper()
	set := q.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			n++
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	return n
}
