package merge

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/series"
)

// interval is a range of time, ms, inclusive.
type interval struct{ mint, maxt int64 }

func covered(ivs []interval, t int64) bool {
	for _, iv := range ivs {
		if iv.mint <= t && t <= iv.maxt {
			return true
		}
	}
	return false
}

// deletes says which samples of the current series are deleted, source by source.
type deletes struct {
	view    *series.View
	all     []deletion
	sources [][]int // by source: indexes in all

	ref     series.Ref
	looked  bool   // matches is of ref
	matches []bool // by tombstone
	builder labels.ScratchBuilder
	ivs     []interval
}

// deletion is a tombstone, ready to match.
type deletion struct {
	catalog.Tombstone
	matchers []*labels.Matcher
}

func newDeletes(v *series.View, sources []*Source) (*deletes, error) {
	d := &deletes{view: v, sources: make([][]int, len(sources)), builder: labels.NewScratchBuilder(16)}
	for i, s := range sources {
		for _, t := range s.deletes {
			at := slices.IndexFunc(d.all, func(o deletion) bool { return o.ID == t.ID })
			if at < 0 {
				ms, err := t.LabelMatchers()
				if err != nil {
					return nil, fmt.Errorf("read tombstone %s: %w", t.ID, err)
				}
				at = len(d.all)
				d.all = append(d.all, deletion{t, ms})
			}
			d.sources[i] = append(d.sources[i], at)
		}
	}
	d.matches = make([]bool, len(d.all))
	return d, nil
}

func (d *deletes) begin(ref series.Ref) { d.ref, d.looked = ref, false }

// of returns the deleted ranges of the current series in a source, valid until the next call.
func (d *deletes) of(source int) []interval {
	d.ivs = d.ivs[:0]
	if len(d.sources[source]) == 0 {
		return nil
	}
	if !d.looked {
		ls := lset(&d.builder, d.view, d.ref)
		for i := range d.all {
			d.matches[i] = d.all[i].matches(ls)
		}
		d.looked = true
	}
	for _, i := range d.sources[source] {
		if d.matches[i] {
			d.ivs = append(d.ivs, interval{d.all[i].MinT, d.all[i].MaxT})
		}
	}
	return d.ivs
}

func (d *deletion) matches(ls labels.Labels) bool {
	for _, m := range d.matchers {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}
