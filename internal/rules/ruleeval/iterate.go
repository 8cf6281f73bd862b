package ruleeval

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// Labels implements storage.Series.
func (s *memSeries) Labels() labels.Labels { return s.labels }

// Iterator implements storage.Series.
func (s *memSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(memSamples(s.samples))
}

// memSamples implements storage.Samples.
type memSamples []Sample

func (s memSamples) Len() int                { return len(s) }
func (s memSamples) Get(i int) chunks.Sample { return memSample{&s[i]} }

// memSample implements chunks.Sample. Rules write neither histograms of integers nor start
// timestamps. Readers own the histograms that they get.
type memSample struct{ of *Sample }

func (s memSample) T() int64                      { return s.of.T }
func (s memSample) F() float64                    { return s.of.V }
func (memSample) ST() int64                       { return 0 }
func (memSample) H() *histogram.Histogram         { return nil }
func (s memSample) FH() *histogram.FloatHistogram { return s.of.H.Copy() }
func (s memSample) Copy() chunks.Sample           { return s }
func (s memSample) Type() chunkenc.ValueType {
	if s.of.H != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// SeriesSet is a set of series in memory.
type SeriesSet struct {
	storage.SeriesSet
	at   storage.Series
	rest []storage.Series
}

// NewSeriesSet returns the set of some series, in their order.
func NewSeriesSet(series []storage.Series) *SeriesSet {
	return &SeriesSet{SeriesSet: storage.EmptySeriesSet(), rest: series}
}

// Next implements storage.SeriesSet.
func (s *SeriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

// At implements storage.SeriesSet.
func (s *SeriesSet) At() storage.Series { return s.at }
