package query

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// mayMatch says that an object can hold a series that matches one of sets; no sets match everything.
func (f *footer) mayMatch(sets [][]*labels.Matcher) bool {
	for _, ms := range sets {
		if !f.refuses(ms) {
			return true
		}
	}
	return len(sets) == 0
}

// refuses says that an object cannot hold a matching series, by its label names alone.
func (f *footer) refuses(ms []*labels.Matcher) bool {
	for _, m := range ms {
		if m.Name == model.MetricNameLabel || m.Matches("") {
			continue
		}
		if !contains(f.LabelColumns, m.Name) && !contains(f.MapNames, m.Name) {
			return true
		}
	}
	return false
}

// contains searches a sorted slice.
func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}
