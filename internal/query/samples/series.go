package samples

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/store/live"
)

// collected is a series while it is read.
type collected struct {
	lookup.Series
	rows   int // of it, in all objects; set by reserve
	floats []fragment
	hists  []histPoint
}

// readable returns series without samples.
func readable(found []lookup.Series) []*collected {
	out, backing := make([]*collected, len(found)), make([]collected, len(found))
	for i := range found {
		backing[i].Series = found[i]
		out[i] = &backing[i]
	}
	return out
}

// take adds what deletions leave of a fragment.
func (s *collected) take(f fragment, d *live.Deletions) {
	if len(s.Tombstones) == 0 || !d.Concern(int(f.rank)) {
		s.floats = append(s.floats, f)
		return
	}
	gone := d.Gone(nil, int(f.rank), s.Tombstones)
	for from, to := range live.Kept(f.times(), gone) {
		s.floats = append(s.floats, fragment{f.batch, f.at + uint32(from), f.off + uint32(from), uint32(to - from), f.rank})
	}
}

// Select returns the series of a match that have samples in its range, by labels. Of them the
// hints, which may be nil, choose a shard, and no more than a limit. The samples are those that the
// function of the hints reads.
func (s *Reader) Select(ctx context.Context, m *lookup.Match, hints *storage.SelectHints) ([]*Series, error) {
	r := s.Collect(m)
	r.work = memory.Of(ctx)
	r.reserve()
	for _, read := range []func(context.Context) error{r.segments, r.blockFloats, r.blockHists} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	s.metrics.Samples.Add(float64(r.size.Load()))
	as := r.view(hints)
	if m.Replicas != nil {
		return chosen(slices.Clone(r.Replicas.Groups), func(g lookup.Group) labels.Labels { return g.Labels }, hints, func(g lookup.Group) (points, error) {
			return as.of(g.Labels, r.chosenPoints(&g))
		})
	}
	series := slices.DeleteFunc(r.got, func(s *collected) bool {
		return len(s.floats) == 0 && !slices.ContainsFunc(s.hists, func(h histPoint) bool { return h.t >= m.MinT })
	})
	return chosen(series, (*collected).shown, hints, func(s *collected) (points, error) {
		p, err := as.of(s.Labels, s.merge())
		s.floats, s.hists = nil, nil
		return p, err
	})
}

// Labelled returns series without samples, by labels, as the hints choose them.
func Labelled(found []lookup.Series, hints *storage.SelectHints) []*Series {
	out, _ := chosen(readable(found), (*collected).shown, hints, nil) // only the samples can fail
	return out
}

// shown is the labels of the series.
func (s *collected) shown() labels.Labels { return s.Labels }

// chosen returns the series among all that the hints choose, by labels, with their samples. Those
// without any are left out, unless samples is nil: then no series has any. It changes all.
func chosen[T any](all []T, lset func(T) labels.Labels, hints *storage.SelectHints, samples func(T) (points, error)) ([]*Series, error) {
	if hints != nil && hints.ShardCount > 0 {
		all = slices.DeleteFunc(all, func(s T) bool { return labels.StableHash(lset(s))%hints.ShardCount != hints.ShardIndex })
	}
	slices.SortFunc(all, func(a, b T) int { return labels.Compare(lset(a), lset(b)) })
	out := make([]*Series, 0, len(all))
	backing := make([]Series, len(all))
	for i, s := range all {
		if hints != nil && hints.Limit > 0 && len(out) == hints.Limit {
			break
		}
		backing[i].lset = lset(s)
		if samples != nil {
			p, err := samples(s)
			if err != nil {
				return nil, err
			}
			if len(p.t) == 0 {
				continue
			}
			backing[i].points = p
		}
		out = append(out, &backing[i])
	}
	return out, nil
}

// Series is a series in memory. It implements storage.Series.
type Series struct {
	lset   labels.Labels
	points points
}

// NewSeries returns a series of float samples at times t (ms).
func NewSeries(lset labels.Labels, t []int64, v []float64) Series {
	return Series{lset, points{t: t, v: v}}
}

// Labels implements storage.Labels.
func (s *Series) Labels() labels.Labels { return s.lset }

// Iterator implements storage.SampleIterable.
func (s *Series) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := reuse.(*iterator); ok {
		it.points, it.i = s.points, -1
		return it
	}
	return &iterator{points: s.points, i: -1}
}
