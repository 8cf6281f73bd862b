package query

import (
	"cmp"
	"slices"
)

// points are the samples of a series, ascending by unique timestamp.
type points struct {
	t  []int64      // ms
	v  []float64    // undefined where h is set
	st []int64      // ms, 0 = unknown; nil = all unknown
	h  []*histPoint // nil where the sample is a float; nil = all are floats
}

// merge puts the samples of all objects in order. Of equal timestamps the sample of the highest rank wins, float or histogram; if one object
// has both, the histogram wins. mint and unread are those of setResetHints.
func (s *memSeries) merge(mint, unread int64) points {
	s.order()
	if len(s.hists) == 0 && !overlap(s.floats) {
		return concat(s.floats)
	}
	p := s.mergeSamples()
	if p.h != nil {
		p.setResetHints(mint, unread)
	}
	return p
}

// order orders the fragments by their first timestamps.
func (s *memSeries) order() {
	if len(s.floats) < 2 {
		return
	}
	slices.SortFunc(s.floats, func(a, b fragment) int {
		return cmp.Or(cmp.Compare(a.batch.t[a.off], b.batch.t[b.off]), cmp.Compare(a.rank, b.rank))
	})
}

// overlap says that fragments, ordered by their first timestamps, are not one after the other.
func overlap(fs []fragment) bool {
	for i := 1; i < len(fs); i++ {
		prev := fs[i-1]
		if prev.batch.t[prev.off+prev.n-1] >= fs[i].batch.t[fs[i].off] {
			return true
		}
	}
	return false
}

func concat(fs []fragment) points {
	switch len(fs) {
	case 0:
		return points{}
	case 1:
		return fs[0].points()
	}
	n, st := 0, false
	for _, f := range fs {
		n += int(f.n)
		st = st || f.batch.st != nil
	}
	p := points{t: make([]int64, 0, n), v: make([]float64, 0, n)}
	if st {
		p.st = make([]int64, n)
	}
	for _, f := range fs {
		q := f.points()
		copy(p.st[min(len(p.t), len(p.st)):], q.st)
		p.t, p.v = append(p.t, q.t...), append(p.v, q.v...)
	}
	return p
}

// points returns the samples of one fragment, which share its memory.
func (f fragment) points() points {
	from, to := f.off, f.off+f.n
	p := points{t: f.batch.t[from:to:to], v: f.batch.v[from:to:to]}
	if f.batch.st != nil {
		p.st = f.batch.st[from:to:to]
	}
	return p
}

// sample is one sample on its way through mergeSamples.
type sample struct {
	t, st int64
	v     float64
	h     *histPoint
	rank  uint32
}

// mergeSamples is merge for samples that come interleaved.
func (s *memSeries) mergeSamples() points {
	var all []sample
	for _, f := range s.floats {
		q := f.points()
		for i, t := range q.t {
			x := sample{t: t, v: q.v[i], rank: f.rank}
			if q.st != nil {
				x.st = q.st[i]
			}
			all = append(all, x)
		}
	}
	for i := range s.hists {
		h := &s.hists[i]
		all = append(all, sample{t: h.t, st: h.st, h: h, rank: h.rank})
	}
	// Stable, and histograms come after floats: the last of equal timestamps is the winner.
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.rank, b.rank)) })
	p := points{t: make([]int64, 0, len(all)), v: make([]float64, 0, len(all)), st: make([]int64, 0, len(all))}
	if len(s.hists) > 0 {
		p.h = make([]*histPoint, 0, len(all))
	}
	for i, x := range all {
		if i+1 < len(all) && all[i+1].t == x.t {
			continue
		}
		p.t, p.v, p.st = append(p.t, x.t), append(p.v, x.v), append(p.st, x.st)
		if p.h != nil {
			p.h = append(p.h, x.h)
		}
	}
	return p
}
