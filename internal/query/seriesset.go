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
	load   func() ([]*memorySeries, annotations.Annotations, error)
	loaded bool
	series []*memorySeries
	i      int                     // current series, plus one
	notes  annotations.Annotations // damaged objects that were left out
	err    error
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	s.read()
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

// Warnings implements storage.SeriesSet. Upstream's API asks for them before the first series, so
// it reads.
func (s *seriesSet) Warnings() annotations.Annotations {
	s.read()
	return s.notes
}

func (s *seriesSet) read() {
	if !s.loaded {
		s.series, s.notes, s.err = s.load()
		s.loaded = true
	}
}
