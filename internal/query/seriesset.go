package query

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// memorySeries implements storage.Series.
type memorySeries struct {
	labels labels.Labels
	points points
}

// Labels implements storage.Labels.
func (s *memorySeries) Labels() labels.Labels { return s.labels }

// Iterator implements storage.SampleIterable.
func (s *memorySeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := reuse.(*iterator); ok {
		it.points, it.i = s.points, -1
		return it
	}
	return newIterator(s.points)
}

// seriesSet implements storage.SeriesSet. It reads when it is first asked, so that the selectors of one query read one after the
// other and a query that fails early reads less.
type seriesSet struct {
	load   func() ([]*memorySeries, error)
	loaded bool
	series []*memorySeries
	i      int // current series, plus one
	err    error
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	if !s.loaded {
		s.series, s.err = s.load()
		s.loaded = true
	}
	if s.err != nil || s.i >= len(s.series) {
		return false
	}
	s.i++
	return true
}

// At implements storage.SeriesSet.
func (s *seriesSet) At() storage.Series { return s.series[s.i-1] }

// Err implements storage.SeriesSet.
func (s *seriesSet) Err() error { return s.err }

// Warnings implements storage.SeriesSet.
func (*seriesSet) Warnings() annotations.Annotations { return nil }
