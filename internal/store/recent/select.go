package recent

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

// Series is a series with its samples in the range of a read, at least one.
type Series struct {
	Labels labels.Labels
	T      []int64
	V      []float64
	Stale  bool // there are stale markers among the values
}

// Between returns the samples in [mint, maxt] (ms), which share the memory of the series.
func (s *Series) Between(mint, maxt int64) ([]int64, []float64) {
	n := len(s.T)
	if n == 0 || s.T[0] >= mint && s.T[n-1] <= maxt { // as most are
		return s.T, s.V
	}
	lo, _ := slices.BinarySearch(s.T, mint)
	hi, found := slices.BinarySearch(s.T, maxt)
	if found {
		hi++
	}
	hi = max(lo, hi)
	return s.T[lo:hi], s.V[lo:hi]
}

// Select returns the series that match and have samples in [mint, maxt] (ms), by labels, in memory
// of room. It reports false if they are more than most or have more than samples samples, if one
// has native histograms, and if the matchers name no value to find them by. Callers must not change
// what they share: the times of neighbours are one array where they are equal, mostly that of the
// head.
func (r Reading) Select(ms []*labels.Matcher, mint, maxt int64, most, samples int, room *Room) ([]Series, bool) {
	begin, v := len(room.series), len(room.v)
	for _, g := range [...]*generation{r.h.last, r.h.before} {
		if g == nil {
			continue
		}
		had := len(room.series)
		if !r.of(g, room, ms, mint, maxt, most, samples-(len(room.v)-v)) {
			return nil, false
		}
		if had > begin && len(room.series) > had {
			slices.SortFunc(room.series[begin:], func(a, b Series) int { return labels.Compare(a.Labels, b.Labels) })
		}
	}
	return slices.Clip(room.series[begin:]), true
}

// of is Select in a generation.
func (r Reading) of(g *generation, room *Room, ms []*labels.Matcher, mint, maxt int64, most, samples int) bool {
	found, ok := g.selections.find(&g.postings, ms)
	if !ok || len(found) > most {
		return false
	}
	n := 0
	for i := range found {
		if len(g.others) > 0 {
			if _, other := g.others[found[i].ref]; other {
				return false
			}
		}
		n += r.h.nodes.count(g.chains.at(found[i].ref), mint, maxt)
	}
	if n > samples {
		return false
	}
	if n == 0 {
		return true
	}
	out, v := slices.Grow(room.series, len(found)), slices.Grow(room.v, n)
	var last []int64 // times of the last series
	for i := range found {
		x, from, own := &found[i], len(v), len(room.t)
		var times []int64
		times, room.t, v = r.h.nodes.read(g.chains.at(x.ref), mint, maxt, room.t, v)
		if from == len(v) {
			continue
		}
		if times == nil {
			times = slices.Clip(room.t[own:])
		}
		if slices.Equal(last, times) {
			times, room.t = last, room.t[:own]
		}
		last = times
		s := Series{Labels: x.labels, T: times, V: v[from:len(v):len(v)]}
		s.Stale = slices.ContainsFunc(s.V, value.IsStaleNaN)
		out = append(out, s)
	}
	room.series, room.v = out, v
	return true
}

// unseen returns the samples of a segment without those that the head has already: a sender that
// got no answer sends them once more. It returns nil if others are not later than all that the head
// has had of their series. The caller holds h.mu.
func (h *Head) unseen(s *Segment) *Segment {
	if h.ascending(s) {
		return s
	}
	out := &Segment{Labels: s.Labels, Rows: s.Rows, Hists: s.Hists, ends: make([]uint32, len(s.Rows))}
	var times []int64
	from := 0
	for row, ref := range s.Rows {
		x := h.chain(ref)
		last := h.nodes.last(x)
		for end := s.End(row); from < end; from++ {
			t, v := s.Time(from), s.V[from]
			switch {
			case t > last:
				times, out.V, last = append(times, t), append(out.V, v), t
			case !h.nodes.has(x, t, v):
				return nil
			}
		}
		out.ends[row] = uint32(len(times))
	}
	out.times(times) // they are some of those of s
	return out
}
