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
		groups := slices.Clone(r.Replicas.Groups)
		if hints != nil && hints.ShardCount > 0 {
			groups = slices.DeleteFunc(groups, func(g lookup.Group) bool { return labels.StableHash(g.Labels)%hints.ShardCount != hints.ShardIndex })
		}
		slices.SortFunc(groups, func(a, b lookup.Group) int { return labels.Compare(a.Labels, b.Labels) })
		var out []*Series
		for i := range groups {
			if hints != nil && hints.Limit > 0 && len(out) == hints.Limit {
				break
			}
			p, err := as.of(groups[i].Labels, r.chosenPoints(&groups[i]))
			if err != nil {
				return nil, err
			}
			if len(p.t) > 0 {
				out = append(out, &Series{groups[i].Labels, p})
			}
		}
		return out, nil
	}
	series := slices.DeleteFunc(r.got, func(s *collected) bool {
		return len(s.floats) == 0 && !slices.ContainsFunc(s.hists, func(h histPoint) bool { return h.t >= m.MinT })
	})
	return merged(series, hints, as)
}

// Labelled returns series without samples, by labels, as the hints choose them.
func Labelled(found []lookup.Series, hints *storage.SelectHints) []*Series {
	out, _ := merged(readable(found), hints, nil) // only views fail
	return out
}

// merged returns the series that the hints choose, with their samples in order. Without a view they
// have none. The fragments are freed.
func merged(series []*collected, hints *storage.SelectHints, as *view) ([]*Series, error) {
	if hints != nil && hints.ShardCount > 0 {
		series = slices.DeleteFunc(series, func(s *collected) bool {
			return labels.StableHash(s.Labels)%hints.ShardCount != hints.ShardIndex
		})
	}
	slices.SortFunc(series, func(a, b *collected) int { return labels.Compare(a.Labels, b.Labels) })
	if hints != nil && hints.Limit > 0 && len(series) > hints.Limit {
		series = series[:hints.Limit]
	}
	out := make([]*Series, 0, len(series))
	backing := make([]Series, len(series))
	for i, s := range series {
		backing[i].lset = s.Labels
		if as != nil {
			p, err := as.of(s.Labels, s.merge())
			if err != nil {
				return nil, err
			}
			if len(p.t) == 0 {
				continue
			}
			backing[i].points = p
		}
		out = append(out, &backing[i])
		series[i] = nil
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
