package samples

import (
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// iterator implements chunkenc.Iterator over points.
type iterator = iteratorOf[int64]

// iteratorOf is iterator. Its parameter keeps go vet from taking Seek for a misspelt io.Seeker.
type iteratorOf[T ~int64] struct {
	points
	i int // current sample; -1 before the first
}

// kind is the type of the current sample.
func (it *iteratorOf[T]) kind() chunkenc.ValueType {
	switch {
	case it.i >= len(it.t):
		return chunkenc.ValNone
	case it.h == nil || it.h[it.i] == nil:
		return chunkenc.ValFloat
	case it.h[it.i].h != nil:
		return chunkenc.ValHistogram
	default:
		return chunkenc.ValFloatHistogram
	}
}

// Next implements chunkenc.Iterator.
func (it *iteratorOf[T]) Next() chunkenc.ValueType {
	if it.i < len(it.t) {
		it.i++
	}
	return it.kind()
}

// Seek implements chunkenc.Iterator. It never goes back.
func (it *iteratorOf[T]) Seek(to T) chunkenc.ValueType {
	t := int64(to)
	it.i = max(it.i, 0)
	if it.i < len(it.t) && it.t[it.i] < t {
		rest := it.t[it.i:]
		it.i += sort.Search(len(rest), func(j int) bool { return rest[j] >= t })
	}
	return it.kind()
}

// At implements chunkenc.Iterator.
func (it *iteratorOf[T]) At() (int64, float64) { return it.t[it.i], it.v[it.i] }

// AtT implements chunkenc.Iterator.
func (it *iteratorOf[T]) AtT() int64 { return it.t[it.i] }

// AtST implements chunkenc.Iterator.
func (it *iteratorOf[T]) AtST() int64 {
	if it.st == nil {
		return 0
	}
	return it.st[it.i]
}

// AtHistogram implements chunkenc.Iterator. The result is the caller's to change.
func (it *iteratorOf[T]) AtHistogram(into *histogram.Histogram) (int64, *histogram.Histogram) {
	h := it.h[it.i].h
	if into == nil {
		return it.t[it.i], h.Copy()
	}
	h.CopyTo(into)
	return it.t[it.i], into
}

// AtFloatHistogram implements chunkenc.Iterator. The result is the caller's to change.
func (it *iteratorOf[T]) AtFloatHistogram(into *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.t[it.i], it.h[it.i].float(into)
}

// Err implements chunkenc.Iterator.
func (*iteratorOf[T]) Err() error { return nil }
