package samples

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/store/replica"
)

// chosenFloats is Joined for a series of a match with replicas.
func (r *Collector) chosenFloats(g *lookup.Group) (t []int64, v []float64, facts promsql.Facts) {
	m := r.memory
	m.last = nil // the kernel's last series has other times
	all, facts := m.replicas[:0], promsql.NoStale
	for _, s := range r.got[g.From:g.To] {
		if len(s.floats) == 0 {
			continue
		}
		if slices.ContainsFunc(s.floats, func(f fragment) bool { return !f.batch.clean }) {
			facts = 0
		}
		p := s.merge()
		all = append(all, replica.Series{T: p.t, V: p.v})
	}
	m.replicas = all
	if m.stretches = m.stretches[:0]; len(all) == 1 {
		m.stretches = append(m.stretches, replica.Stretch{To: len(all[0].T)})
	} else {
		m.stretches = r.Replicas.Rule.Choose(m.stretches, all, r.Replicas.MinT, r.Replicas.MaxT)
	}
	p := points{t: m.joined.t[:0], v: m.joined.v[:0]}
	for _, s := range m.stretches {
		ts, vs := all[s.Of].T[s.From:s.To], all[s.Of].V[s.From:s.To]
		lo, hi := between(ts, r.Replicas.MinT, r.Replicas.MaxT)
		p.t, p.v = append(p.t, ts[lo:hi]...), append(p.v, vs[lo:hi]...)
	}
	m.joined = p
	return p.t, p.v, facts
}

// chosenPoints returns the samples of a series up to the end of the range of the match's replicas,
// all of those in the range. It frees those of which it is made.
func (r *Collector) chosenPoints(g *lookup.Group) points {
	all, of := make([]points, 0, g.To-g.From), make([]replica.Series, 0, g.To-g.From)
	for i := g.From; i < g.To; i++ {
		if p := r.got[i].merge(); len(p.t) > 0 {
			all, of = append(all, p), append(of, replica.Series{T: p.t, V: p.comparable()})
		}
		r.got[i] = nil
	}
	out := points{}
	switch len(all) {
	case 0:
		return out
	case 1:
		out = all[0]
	default:
		st := slices.ContainsFunc(all, func(p points) bool { return p.st != nil })
		hists := slices.ContainsFunc(all, func(p points) bool { return p.h != nil })
		for _, s := range r.Replicas.Rule.Choose(nil, of, r.Replicas.MinT, r.Replicas.MaxT) {
			p := &all[s.Of]
			out.t, out.v = append(out.t, p.t[s.From:s.To]...), append(out.v, p.v[s.From:s.To]...)
			if st || hists {
				out.st = appendOrZero(out.st, p.st, s)
			}
			if hists {
				out.h = appendOrZero(out.h, p.h, s)
			}
		}
	}
	end, _ := between(out.t, r.Replicas.MaxT+1, math.MaxInt64)
	return out.slice(0, end)
}

// appendOrZero appends a stretch of a column, or as many zeros if there is no such column.
func appendOrZero[T any](dst, column []T, s replica.Stretch) []T {
	if column == nil {
		return append(dst, make([]T, s.To-s.From)...)
	}
	return append(dst, column[s.From:s.To]...)
}

// slice returns the points [from, to).
func (p points) slice(from, to int) points {
	out := points{t: p.t[from:to], v: p.v[from:to]}
	if p.st != nil {
		out.st = p.st[from:to]
	}
	if p.h != nil {
		out.h = p.h[from:to]
	}
	return out
}

// comparable returns the values that package replica compares.
func (p *points) comparable() []float64 {
	if p.h == nil {
		return p.v
	}
	out := slices.Clone(p.v)
	for i, h := range p.h {
		if h != nil {
			out[i] = h.comparable()
		}
	}
	return out
}

// comparable is the count of a histogram that counts up, and a stale marker of one.
func (h *histPoint) comparable() float64 {
	hint, sum, count := histogram.UnknownCounterReset, 0.0, 0.0
	if h.h != nil {
		hint, sum, count = h.h.CounterResetHint, h.h.Sum, float64(h.h.Count)
	} else {
		hint, sum, count = h.fh.CounterResetHint, h.fh.Sum, h.fh.Count
	}
	switch {
	case value.IsStaleNaN(sum):
		return sum
	case hint == histogram.GaugeType:
		return math.NaN()
	}
	return count
}
