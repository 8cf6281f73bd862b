package query

import (
	"slices"

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

// finish merges what was collected and orders it by labels, always: results must not depend on how threads were scheduled.
func (c *collector) finish(hints *storage.SelectHints) []*memorySeries {
	c.series = slices.DeleteFunc(c.series, func(s *memSeries) bool { return c.scan.want == samples && !s.within(c.mint) })
	if hints != nil && hints.ShardCount > 0 {
		c.series = slices.DeleteFunc(c.series, func(s *memSeries) bool {
			return labels.StableHash(s.labels)%hints.ShardCount != hints.ShardIndex
		})
	}
	slices.SortFunc(c.series, func(a, b *memSeries) int { return labels.Compare(a.labels, b.labels) })
	if hints != nil && hints.Limit > 0 && len(c.series) > hints.Limit {
		c.series = c.series[:hints.Limit]
	}
	out := make([]*memorySeries, len(c.series))
	backing := make([]memorySeries, len(c.series))
	for i, s := range c.series {
		backing[i] = memorySeries{s.labels, s.merge(c.mint, c.unread)}
		out[i] = &backing[i]
		c.series[i] = nil // frees the fragments
	}
	return out
}

// within says that the series has a sample that is not before mint.
func (s *memSeries) within(mint int64) bool {
	return len(s.floats) > 0 || slices.ContainsFunc(s.hists, func(h histPoint) bool { return h.t >= mint })
}
