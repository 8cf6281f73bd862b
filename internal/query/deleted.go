package query

import (
	"fmt"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/source"
)

// deletions are the tombstones of a snapshot as they concern the objects of a source. The zero value deletes nothing.
type deletions struct {
	tombs    []catalog.Tombstone
	matchers [][]*labels.Matcher // by tombstone
	applies  [][]bool            // by object and tombstone; nil = none applies
}

func newDeletions(tombs []catalog.Tombstone, objs []source.Object) (deletions, error) {
	d := deletions{tombs: tombs, applies: make([][]bool, len(objs))}
	for _, t := range tombs {
		ms, err := t.LabelMatchers()
		if err != nil {
			return d, fmt.Errorf("read tombstone %s: %w", t.ID, err)
		}
		d.matchers = append(d.matchers, ms)
	}
	for i := range objs {
		for k, t := range tombs {
			if t.AppliesTo(objs[i].DeletesThrough) {
				if d.applies[i] == nil {
					d.applies[i] = make([]bool, len(tombs))
				}
				d.applies[i][k] = true
			}
		}
	}
	return d, nil
}

// matching returns which tombstones select a series.
func (d *deletions) matching(lset labels.Labels) []int {
	var out []int
	for k, ms := range d.matchers {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(lset.Get(m.Name)) }) {
			out = append(out, k)
		}
	}
	return out
}

// gone returns the times (ms) that are deleted of a series in an object, in order, apart.
func (d *deletions) gone(object int, s *memSeries) tombstones.Intervals {
	if len(s.tombs) == 0 || d.applies[object] == nil {
		return nil
	}
	var out tombstones.Intervals
	for _, k := range s.tombs {
		if d.applies[object][k] {
			out = out.Add(tombstones.Interval{Mint: d.tombs[k].MinT, Maxt: d.tombs[k].MaxT})
		}
	}
	return out
}

// cut appends what deletions leave of a fragment.
func (f fragment) cut(dst []fragment, gone tombstones.Intervals) []fragment {
	for _, g := range gone {
		ts := f.batch.t[f.off : f.off+f.n]
		lo := uint32(sort.Search(len(ts), func(i int) bool { return ts[i] >= g.Mint }))
		hi := uint32(sort.Search(len(ts), func(i int) bool { return ts[i] > g.Maxt }))
		if lo > 0 {
			dst = append(dst, fragment{f.batch, f.off, lo, f.rank})
		}
		f.off, f.n = f.off+hi, f.n-hi
	}
	if f.n > 0 {
		dst = append(dst, f)
	}
	return dst
}

// isDeleted says whether a time (ms) is in one of the intervals, which are few.
func isDeleted(t int64, gone tombstones.Intervals) bool {
	return slices.ContainsFunc(gone, func(g tombstones.Interval) bool { return g.InBounds(t) })
}
