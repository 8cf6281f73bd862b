package promblocktest

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Plain are series without a TSDB. They implement storage.Queryable.
type Plain []Series

// Querier implements storage.Queryable.
func (p Plain) Querier(mint, maxt int64) (storage.Querier, error) {
	return plain{storage.NoopQuerier(), p, mint, maxt}, nil
}

// plain is a querier of series, which are sorted by their labels.
type plain struct {
	storage.Querier
	all        []Series
	mint, maxt int64
}

// Select implements storage.Querier.
func (p plain) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := &found{}
	for _, s := range p.all {
		if !matches(s.Labels, ms) {
			continue
		}
		var part []chunks.Sample
		for _, x := range s.Samples {
			if x.Time >= p.mint && x.Time <= p.maxt {
				part = append(part, sample{x})
			}
		}
		if len(part) > 0 {
			set.list = append(set.list, storage.NewListSeries(s.Labels, part))
		}
	}
	return set
}

func matches(ls labels.Labels, ms []*labels.Matcher) bool {
	for _, m := range ms {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

// found implements storage.SeriesSet.
type found struct {
	list []storage.Series
	at   int
}

// Next implements storage.SeriesSet.
func (f *found) Next() bool {
	f.at++
	return f.at <= len(f.list)
}

// At implements storage.SeriesSet.
func (f *found) At() storage.Series { return f.list[f.at-1] }

// Err implements storage.SeriesSet.
func (*found) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*found) Warnings() annotations.Annotations { return nil }

// Without returns the series without the samples in [from, to] of those that all matchers match.
func Without(all []Series, from, to int64, ms ...*labels.Matcher) Plain {
	out := make(Plain, len(all))
	for i, s := range all {
		out[i].Labels = s.Labels
		for _, x := range s.Samples {
			if x.Time < from || x.Time > to || !matches(s.Labels, ms) {
				out[i].Samples = append(out[i].Samples, x)
			}
		}
	}
	return out
}
