package replica

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/value"
)

// Series is the samples of one replica, ascending by unique time.
type Series struct {
	T []int64 // ms
	// V are values: of a native histogram that counts up its count, of another one any NaN. A stale
	// marker is a stale marker.
	V []float64
}

// Stretch is some samples that count: [From, To) of one of the replicas.
type Stretch struct{ Of, From, To int }

// Choose appends the stretches of samples that count of a series, in the order of time: all of
// those in [mint, maxt] (ms), and some of others. The replicas are in the order of their labels.
// They have all samples of the times that are at most Around from the range.
func (r Rule) Choose(dst []Stretch, of []Series, mint, maxt int64) []Stretch {
	first := len(dst)
	absent := make([][]span, 0, len(of))
	free := []span{{max(mint, math.MinInt64+Reach) - Reach, min(maxt, math.MaxInt64-Reach) + Reach}}
	var ended [][2]int // replica and position of stale markers
	for i := range of {
		if len(ended) == 0 && !slices.ContainsFunc(of[i:], func(s Series) bool { return s.any(free) }) {
			break // as is usual: no sample of the others can count
		}
		var gone []span
		gone, ended = r.absences(of, i, ended)
		absent = append(absent, gone)
		dst = stretches(dst, of[i].T, i, gone, free)
		free = both(free, gone)
	}
	for _, e := range ended {
		t, alone := of[e[0]].T[e[1]], true
		for i := range absent {
			alone = alone && (i == e[0] || within(absent[i], t))
		}
		if alone {
			dst = append(dst, Stretch{e[0], e[1], e[1] + 1})
		}
	}
	all := dst[first:]
	slices.SortFunc(all, func(a, b Stretch) int {
		return cmp.Or(cmp.Compare(of[a.Of].T[a.From], of[b.Of].T[b.From]), cmp.Compare(a.Of, b.Of))
	})
	// Replicas that end at once leave one marker.
	all = slices.CompactFunc(all, func(a, b Stretch) bool { return of[a.Of].T[a.From] == of[b.Of].T[b.From] })
	return dst[:first+len(trim(all, of))]
}

// any reports whether there is a sample in one of the spans.
func (s *Series) any(in []span) bool {
	return slices.ContainsFunc(in, func(x span) bool {
		k := sort.Search(len(s.T), func(k int) bool { return s.T[k] >= x.from })
		return k < len(s.T) && s.T[k] < x.to
	})
}

// span is the times from <= t < to (ms).
type span struct{ from, to int64 }

// within reports whether a time is in one of the ascending spans.
func within(spans []span, t int64) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].to > t })
	return i < len(spans) && spans[i].from <= t
}

// both returns the times that are in a and in b, which ascend.
func both(a, b []span) (out []span) {
	for len(a) > 0 && len(b) > 0 {
		if s := (span{max(a[0].from, b[0].from), min(a[0].to, b[0].to)}); s.from < s.to {
			out = append(out, s)
		}
		if a[0].to < b[0].to {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// absences returns the spans in which a replica is absent, ascending, and appends its stale markers
// to ended.
func (r Rule) absences(of []Series, i int, ended [][2]int) ([]span, [][2]int) {
	s := &of[i]
	var out []span
	var c cadence
	from := int64(math.MinInt64) // absent from here on; MaxInt64: present since the last sample
	for k, t := range s.T {
		if value.IsStaleNaN(s.V[k]) {
			ended = append(ended, [2]int{i, k})
			if p := c.t[0]; from == math.MaxInt64 {
				from = p + 1
				if t-p > r.patience(&c) {
					from = r.silent(of, p, r.patience(&c))
				}
			}
			continue
		}
		if from == math.MaxInt64 && c.regular(t) { // as most are
			c.add(t)
			continue
		}
		if from == math.MaxInt64 && t-c.t[0] > r.longest(&c) {
			from = c.t[0] + 1
			if most := r.patience(&c); t-c.t[0] > most {
				from = r.silent(of, c.t[0], most)
			}
		}
		if from < t {
			out = append(out, span{from, t})
		}
		from = math.MaxInt64
		c.add(t)
	}
	if from == math.MaxInt64 {
		from = r.silent(of, c.t[0], r.patience(&c))
	}
	return append(out, span{from, math.MaxInt64}), ended
}

// longest is the longest time (ms) from a sample to the next at which a replica is present.
func (r Rule) longest(c *cadence) int64 {
	if d := c.interval(); d > 0 {
		return min(d+d/4*3, Reach)
	}
	return r.Failover
}

// patience is how long (ms) nobody knows that a replica is absent.
func (r Rule) patience(c *cadence) int64 { return max(r.longest(c), r.Failover) }

// silent returns from when on a replica is absent that has nothing within most after its sample at
// p (ms): at once if other samples show that it is silent, and not merely late.
func (r Rule) silent(of []Series, p, most int64) int64 {
	for i := range of {
		t := of[i].T
		if k := sort.Search(len(t), func(k int) bool { return t[k] > p+most }); k < len(t) && t[k] <= p+most+Reach {
			return p + 1
		}
	}
	return p + most + 1
}

// cadence is the times of the last samples of a replica (ms), the newest first.
type cadence struct {
	t [4]int64
	n int
}

func (c *cadence) add(t int64) {
	c.t[3], c.t[2], c.t[1], c.t[0] = c.t[2], c.t[1], c.t[0], t
	c.n = min(c.n+1, len(c.t))
}

// regular reports whether a sample at t is certainly no further from the last one than longest.
func (c *cadence) regular(t int64) bool {
	d := min(c.t[0]-c.t[1], c.t[1]-c.t[2], c.t[2]-c.t[3])
	return c.n == len(c.t) && c.t[0]-c.t[3] <= Reach && t-c.t[0] <= d+d/4*3
}

// interval returns the distance (ms) between samples, 0 if it is not known.
func (c *cadence) interval() int64 {
	oldest, known := c.t[0]-Reach, 0
	for known+1 < c.n && c.t[known+1] >= oldest {
		known++
	}
	x, y, z := c.t[0]-c.t[1], c.t[1]-c.t[2], c.t[2]-c.t[3]
	switch known {
	case 0:
		return 0
	case 1:
		return x
	case 2:
		return min(x, y)
	}
	return max(min(x, y), min(max(x, y), z))
}

// stretches appends the samples of a replica in free. absent are the spans in which it is absent.
func stretches(dst []Stretch, t []int64, of int, absent, free []span) []Stretch {
	present := make([]span, 0, len(absent))
	from := int64(math.MinInt64)
	for _, a := range absent {
		if from < a.from {
			present = append(present, span{from, a.from})
		}
		from = a.to
	}
	at := 0
	for _, s := range both(present, free) {
		rest := t[at:]
		lo := at + sort.Search(len(rest), func(k int) bool { return rest[k] >= s.from })
		rest = t[lo:]
		at = lo + sort.Search(len(rest), func(k int) bool { return rest[k] >= s.to })
		if lo < at {
			dst = append(dst, Stretch{of, lo, at})
		}
	}
	return dst
}

// trim takes samples from the ends of stretches at which the value only seems to fall.
func trim(all []Stretch, of []Series) []Stretch {
	if len(all) < 2 {
		return all
	}
	type ends struct{ first, last bool }
	cut := make([]ends, len(all))
	for k := range all[1:] {
		x, y := all[k], all[k+1]
		switch last, next := x.To-1, y.From; {
		case x.Of < y.Of:
			cut[k+1].first = before(&of[y.Of], next, of[x.Of].T[last], of[x.Of].V[last])
		case x.Of > y.Of:
			cut[k].last = after(&of[x.Of], last, of[y.Of].T[next], of[y.Of].V[next])
		}
	}
	out := all[:0]
	for k, s := range all {
		if cut[k].first {
			s.From++
		}
		if cut[k].last {
			s.To--
		}
		if s.From < s.To {
			out = append(out, s)
		}
	}
	return out
}

// before reports whether the sample k of s was taken before another replica's sample t, v (ms),
// although it has the later time: the value falls, but s shows no reset around it.
func before(s *Series, k int, t int64, v float64) bool {
	if d := s.distance(k); d > 0 {
		return s.T[k-1] < t && s.T[k]-t < d/2 && s.V[k-1] <= s.V[k] && s.V[k] < v
	}
	d := s.distance(k + 1)
	return s.T[k]-t < d/2 && s.V[k] < v && v <= s.V[k+1]
}

// after reports whether the sample k of s was taken after another replica's sample t, v (ms),
// although it has the earlier time.
func after(s *Series, k int, t int64, v float64) bool {
	if d := s.distance(k); d > 0 {
		return t-s.T[k] < d/2 && s.V[k-1] <= v && v < s.V[k]
	}
	d := s.distance(k + 1)
	return t-s.T[k] < d/2 && v < s.V[k] && s.V[k] <= s.V[k+1]
}

// distance returns the time (ms) from the sample before to the sample k, 0 if one of them does not
// exist or they are further apart than Reach. Comparisons with a stale marker, which is a NaN, are
// false.
func (s *Series) distance(k int) int64 {
	if k == 0 || k >= len(s.T) || s.T[k]-s.T[k-1] > Reach {
		return 0
	}
	return s.T[k] - s.T[k-1]
}
