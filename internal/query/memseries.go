package query

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/lookup"
)

// memSeries is a series while it is read.
type memSeries struct {
	lookup.Series
	floats []fragment
	hists  []histPoint
}

// readable returns series without samples.
func readable(found []lookup.Series) []*memSeries {
	out, backing := make([]*memSeries, len(found)), make([]memSeries, len(found))
	for i := range found {
		backing[i].Series = found[i]
		out[i] = &backing[i]
	}
	return out
}

// take adds what deletions leave of a fragment.
func (s *memSeries) take(f fragment, d *live.Deletions) {
	gone := d.Gone(nil, int(f.rank), s.Tombstones)
	for from, to := range live.Kept(f.batch.t[f.off:f.off+f.n], gone) {
		s.floats = append(s.floats, fragment{f.batch, f.off + uint32(from), uint32(to - from), f.rank})
	}
}

// within says that the series has a sample that is not before mint.
func (s *memSeries) within(mint int64) bool {
	return len(s.floats) > 0 || slices.ContainsFunc(s.hists, func(h histPoint) bool { return h.t >= mint })
}

// chosen orders series by labels, always, and leaves what the hints ask for: a shard of them, and no more than a limit. hints may be nil.
func chosen(series []*memSeries, hints *storage.SelectHints) []*memSeries {
	if hints != nil && hints.ShardCount > 0 {
		series = slices.DeleteFunc(series, func(s *memSeries) bool {
			return labels.StableHash(s.Labels)%hints.ShardCount != hints.ShardIndex
		})
	}
	slices.SortFunc(series, func(a, b *memSeries) int { return labels.Compare(a.Labels, b.Labels) })
	if hints != nil && hints.Limit > 0 && len(series) > hints.Limit {
		series = series[:hints.Limit]
	}
	return series
}

// merged returns the series with their samples in order. mint and unread are those of setResetHints. The fragments are freed.
func merged(series []*memSeries, mint, unread int64) []*memorySeries {
	out := make([]*memorySeries, len(series))
	backing := make([]memorySeries, len(series))
	for i, s := range series {
		backing[i] = memorySeries{s.Labels, s.merge(mint, unread)}
		out[i] = &backing[i]
		series[i] = nil
	}
	return out
}
