package merge

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/segment"
)

// histRuns are the histograms of all rows of a series, one row after the other.
type histRuns struct {
	samples []segment.Hist
	sources []int // aligned with samples
}

// inOrder says that the timestamps ascend, each once.
func (h *histRuns) inOrder() bool {
	for i := 1; i < len(h.samples); i++ {
		if h.samples[i-1].T >= h.samples[i].T {
			return false
		}
	}
	return true
}

// histograms reads the histograms of all rows.
func (m *merger) histograms() (err error) {
	h := &m.hists
	clear(h.samples) // let go of the last series'
	h.samples, h.sources = h.samples[:0], h.sources[:0]
	for _, a := range m.rows {
		s := m.sources[a.source]
		r := &s.rows[a.row]
		if r.hists == 0 {
			continue
		}
		from := len(h.samples)
		if h.samples, err = s.content.hists(r, h.samples); err != nil {
			return s.fail(err)
		}
		m.stats.Read += int64(r.hists)
		if ivs := m.deletes.of(a.source); len(ivs) > 0 {
			kept := slices.DeleteFunc(h.samples[from:], func(x segment.Hist) bool { return covered(ivs, x.T) })
			m.stats.Deleted += int64(len(h.samples) - from - len(kept))
			h.samples = h.samples[:from+len(kept)]
		}
		for range h.samples[from:] {
			h.sources = append(h.sources, a.source)
		}
	}
	return nil
}

// mixer merges series that have histograms which interleave with each other or with floats.
type mixer struct {
	items  []item
	floats Run
	hists  []segment.Hist
}

// item is one sample: the float or the histogram at index.
type item struct {
	t      int64
	source int
	hist   bool
	index  int
}

// merge keeps of equal timestamps the sample of the last source; of one source that has both, the histogram.
func (x *mixer) merge(m *merger) {
	x.items = x.items[:0]
	for k, a := range m.rows {
		to := len(m.run.TS)
		if k+1 < len(m.marks) {
			to = m.marks[k+1]
		}
		for i := m.marks[k]; i < to; i++ {
			x.items = append(x.items, item{m.run.TS[i], a.source, false, i})
		}
	}
	for i := range m.hists.samples {
		x.items = append(x.items, item{m.hists.samples[i].T, m.hists.sources[i], true, i})
	}
	slices.SortStableFunc(x.items, func(a, b item) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.source, b.source)) })
	x.floats.reset()
	clear(x.hists)
	x.hists = x.hists[:0]
	for k, it := range x.items {
		switch {
		case k+1 < len(x.items) && x.items[k+1].t == it.t:
		case it.hist:
			x.hists = append(x.hists, m.hists.samples[it.index])
		default:
			x.floats.push(m.run.slice(it.index, it.index+1))
		}
	}
	m.out.TS, m.out.V, m.out.ST, m.out.Hists = x.floats.TS, x.floats.V, x.floats.ST, x.hists
	if !m.hasST {
		m.out.ST = nil
	}
}
