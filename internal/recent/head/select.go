package head

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

// Series is a series with its samples in the range of a read, at least one.
type Series struct {
	Labels labels.Labels
	ID     uint64 // series.ID
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
// what they share: the times of neighbours are one array where they are equal.
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
		n += r.h.nodes.count(&g.chains[found[i].ref], mint, maxt)
	}
	if n > samples {
		return false
	}
	if n == 0 {
		return true
	}
	out, t, v := slices.Grow(room.series, len(found)), slices.Grow(room.t, n), slices.Grow(room.v, n)
	var last []int64 // times of the last series
	for i := range found {
		x, at, from := &found[i], len(t), len(v)
		t, v = r.h.nodes.read(&g.chains[x.ref], mint, maxt, t, v)
		if from == len(v) {
			continue
		}
		s := Series{Labels: x.labels, ID: g.view.ID(x.ref), T: t[at:len(t):len(t)], V: v[from:len(v):len(v)]}
		if slices.Equal(last, s.T) {
			s.T, t = last, t[:at]
		}
		last = s.T
		s.Stale = slices.ContainsFunc(s.V, value.IsStaleNaN)
		out = append(out, s)
	}
	room.series, room.t, room.v = out, t, v
	return true
}
