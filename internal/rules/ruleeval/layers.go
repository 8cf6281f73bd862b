package ruleeval

import (
	"context"
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// Layers are several storages with different samples as one.
type Layers []storage.Queryable

// Querier implements storage.Queryable.
func (l Layers) Querier(mint, maxt int64) (storage.Querier, error) {
	var all []storage.Querier
	for _, q := range l {
		one, err := q.Querier(mint, maxt)
		if err != nil {
			for _, open := range all {
				_ = open.Close() // the first error is returned
			}
			return nil, err
		}
		all = append(all, one)
	}
	return storage.NewMergeQuerier(all, nil, storage.ChainedSeriesMerge), nil
}

// upTo hides samples after a time, which were not there yet.
type upTo struct {
	storage.Queryable
	maxt int64 // ms, inclusive
}

// Querier implements storage.Queryable.
func (u upTo) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := u.Queryable.Querier(mint, min(maxt, u.maxt))
	return &upToQuerier{q, u.maxt}, err
}

type upToQuerier struct {
	storage.Querier
	maxt int64
}

// Select implements storage.Querier. Storages read what the hints say.
func (q *upToQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if hints != nil {
		one := *hints
		one.End = min(one.End, q.maxt)
		hints = &one
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}

// before hides what rules that are evaluated have written from the begin of the evaluation on.
type before struct {
	storage.Queryable
	rules []*Rule
	start int64 // ms
}

// Querier implements storage.Queryable.
func (b before) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := b.Queryable.Querier(mint, maxt)
	return &beforeQuerier{q, b}, err
}

type beforeQuerier struct {
	storage.Querier
	before before
}

// Select implements storage.Querier.
func (q *beforeQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	return &beforeSet{q.Querier.Select(ctx, sorted, hints, ms...), q.before}
}

type beforeSet struct {
	storage.SeriesSet
	before before
}

// At implements storage.SeriesSet.
func (s *beforeSet) At() storage.Series {
	one, end := s.SeriesSet.At(), int64(math.MaxInt64)
	ls := one.Labels()
	for _, r := range s.before.rules {
		if r.wrote(ls) {
			end = min(end, s.before.start-r.group.QueryOffset().Milliseconds())
		}
	}
	if end == math.MaxInt64 {
		return one
	}
	return &cutSeries{one, end}
}

// cutSeries are the samples of a series before a time.
type cutSeries struct {
	storage.Series
	end int64
}

// Iterator implements storage.Series.
func (s *cutSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	if old, ok := reuse.(*tsdb.DeletedIterator); ok {
		reuse = old.Iter
	}
	return &tsdb.DeletedIterator{Iter: s.Series.Iterator(reuse), Intervals: tombstones.Intervals{{Mint: s.end, Maxt: math.MaxInt64}}}
}
