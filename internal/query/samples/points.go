package samples

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/store/live"
)

// points are the samples of a series, ascending by unique timestamp.
type points struct {
	t  []int64      // ms
	v  []float64    // undefined where h is set
	st []int64      // ms, 0 = unknown; nil = all unknown
	h  []*histPoint // nil where the sample is a float; nil = all are floats
}

// merge returns the samples that count of all objects (package live).
func (s *collected) merge() points {
	if len(s.hists) == 0 && len(s.floats) == 1 {
		return s.floats[0].points()
	}
	f := s.gather()
	if len(s.hists) == 0 {
		f.Merge()
		return points{t: f.TS, v: f.V, st: f.ST}
	}
	samples := f.Samples(make([]live.Sample, 0, len(f.TS)+len(s.hists)))
	for i := range s.hists {
		h := &s.hists[i]
		samples = append(samples, live.Sample{T: h.t, Object: int(h.rank), Hist: true, At: i})
	}
	samples = live.Pick(samples)
	n := len(samples)
	p := points{t: make([]int64, n), v: make([]float64, n), st: make([]int64, n), h: make([]*histPoint, n)}
	for i, x := range samples {
		p.t[i] = x.T
		if x.Hist {
			p.h[i] = &s.hists[x.At]
			p.st[i] = p.h[i].st
			continue
		}
		p.v[i] = f.V[x.At]
		if len(f.ST) > 0 {
			p.st[i] = f.ST[x.At]
		}
	}
	return p
}

// gather returns the floats of all objects.
func (s *collected) gather() *live.Floats {
	slices.SortFunc(s.floats, func(a, b fragment) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.first(), b.first()))
	})
	n, st := 0, false
	for _, f := range s.floats {
		n += int(f.n)
		st = st || f.batch.st != nil
	}
	out := &live.Floats{Run: live.Run{TS: make([]int64, 0, n), V: make([]float64, 0, n)}}
	if st {
		out.ST = make([]int64, n) // unknown in objects that have none
	}
	for _, f := range s.floats {
		out.Begin(int(f.rank))
		p := f.points()
		copy(out.ST[min(len(out.TS), len(out.ST)):], p.st)
		out.TS, out.V = append(out.TS, p.t...), append(out.V, p.v...)
	}
	return out
}

// points returns the samples of one fragment, which share its memory.
func (f fragment) points() points {
	from, to := f.off, f.off+f.n
	p := points{t: f.times(), v: f.batch.v[from:to:to]}
	if f.batch.st != nil {
		p.st = f.batch.st[from:to:to]
	}
	return p
}
