package samples

import (
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// seriesSet is a storage.SeriesSet that reads at the first call, so that the selectors of one query
// read one after the other and a query that fails early reads less.
type seriesSet struct {
	load   func() ([]*Series, annotations.Annotations, error)
	loaded bool
	series []*Series
	i      int                     // current series, plus one
	notes  annotations.Annotations // damaged objects that were left out
	err    error
}

// LazySet returns the set of the series that load returns.
func LazySet(load func() ([]*Series, annotations.Annotations, error)) storage.SeriesSet {
	return &seriesSet{load: load}
}

// LoadedSet returns the set of series in memory.
func LoadedSet(series []*Series, notes annotations.Annotations) storage.SeriesSet {
	return &seriesSet{loaded: true, series: series, notes: notes}
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
