package ruleeval

import (
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Labels implements storage.Series.
func (s *memSeries) Labels() labels.Labels { return s.labels }

// Iterator implements storage.Series.
func (s *memSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*memIterator)
	if !ok {
		it = &memIterator{}
	}
	it.samples, it.at = s.samples, -1
	return it
}

// memIterator implements chunkenc.Iterator.
type memIterator = memIteratorOf[int64]

// memIteratorOf is generic so that go vet does not compare its Seek with io.Seeker's.
type memIteratorOf[T int64] struct {
	samples []Sample
	at      int
}

// kind is that of the current sample.
func (it *memIteratorOf[T]) kind() chunkenc.ValueType {
	switch {
	case it.at >= len(it.samples):
		return chunkenc.ValNone
	case it.samples[it.at].H != nil:
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// Next implements chunkenc.Iterator.
func (it *memIteratorOf[T]) Next() chunkenc.ValueType {
	if it.at < len(it.samples) {
		it.at++
	}
	return it.kind()
}

// Seek implements chunkenc.Iterator.
func (it *memIteratorOf[T]) Seek(t T) chunkenc.ValueType {
	it.at = max(it.at, 0)
	rest := it.samples[min(it.at, len(it.samples)):]
	it.at += sort.Search(len(rest), func(i int) bool { return rest[i].T >= int64(t) })
	return it.kind()
}

// At implements chunkenc.Iterator.
func (it *memIteratorOf[T]) At() (int64, float64) { return it.samples[it.at].T, it.samples[it.at].V }

// AtHistogram implements chunkenc.Iterator. There are no histograms of integers.
func (*memIteratorOf[T]) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("rules write float histograms")
}

// AtFloatHistogram implements chunkenc.Iterator.
func (it *memIteratorOf[T]) AtFloatHistogram(to *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	s := &it.samples[it.at]
	if to == nil {
		return s.T, s.H.Copy()
	}
	s.H.CopyTo(to)
	return s.T, to
}

// AtT implements chunkenc.Iterator.
func (it *memIteratorOf[T]) AtT() int64 { return it.samples[it.at].T }

// AtST implements chunkenc.Iterator: rules write no start timestamps.
func (*memIteratorOf[T]) AtST() int64 { return 0 }

// Err implements chunkenc.Iterator.
func (*memIteratorOf[T]) Err() error { return nil }
