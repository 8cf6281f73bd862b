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

// trim takes samples from the ends of stretches where a counter only seems to fall, or to rise to a
// value from before a reset. A stretch is compared with the one before it, and with those that end
// at most Skew before it, as they were untrimmed.
func trim(all []Stretch, of []Series) []Stretch {
	if len(all) < 2 {
		return all
	}
	cut := slices.Clone(all)
	var own, other []sample
	for k, y := range all {
		for j := k - 1; j >= 0; j-- {
			x := all[j]
			last, first := of[x.Of].T[x.To-1], of[y.Of].T[y.From]
			if j < k-1 && first-last > Skew {
				break
			}
			switch {
			case x.Of < y.Of:
				own = of[x.Of].samples(own[:0], last-Reach, last, 1)
				other = of[y.Of].samples(other[:0], last-Reach-Skew, last+Skew+Reach, 1)
				cut[k].From = max(cut[k].From, min(notBefore(own, other, y.From), y.To))
			case x.Of > y.Of: // the same, backwards
				own = of[y.Of].samples(own[:0], first, first+Reach, -1)
				other = of[x.Of].samples(other[:0], first-Skew-Reach, first+Reach+Skew, -1)
				cut[j].To = min(cut[j].To, max(1-notBefore(own, other, 1-x.To), x.From))
			}
		}
	}
	return append(all[:0], slices.DeleteFunc(cut, func(s Stretch) bool { return s.From >= s.To })...)
}

// sample is the k-th sample of a series.
type sample struct {
	t int64 // ms
	v float64
	k int
}

// samples appends the samples with from <= t <= to that have a value. With sign -1 times, values
// and k are negated, so that they ascend backwards.
func (s *Series) samples(dst []sample, from, to int64, sign int) []sample {
	lo := sort.Search(len(s.T), func(k int) bool { return s.T[k] >= from })
	for k := lo; k < len(s.T) && s.T[k] <= to; k++ {
		if v := s.V[k]; v == v {
			dst = append(dst, sample{int64(sign) * s.T[k], float64(sign) * v, sign * k})
		}
	}
	if sign < 0 {
		slices.Reverse(dst)
	}
	return dst
}

// fall is between two samples of which the first has the larger value, v.
type fall struct {
	from, to int64 // ms
	v        float64
}

func falls(in []sample) (out []fall) {
	for i := 1; i < len(in); i++ {
		if in[i].v < in[i-1].v {
			out = append(out, fall{in[i-1].t, in[i].t, in[i-1].v})
		}
	}
	return out
}

// notBefore returns the first sample of other, from k on, that was not taken before the last one of
// own, if the clocks of the two differ by at most Skew: the two have seen the same reset, or none,
// and the value is not less, or other has seen a reset later than own. It returns k if there is none
// until Skew later, and where the values are not those of a counter, with a reset at most.
func notBefore(own, other []sample, k int) int {
	i := slices.IndexFunc(other, func(x sample) bool { return x.k == k })
	if len(own) == 0 || i < 0 {
		return k // a stale marker, or no value
	}
	last, resets, theirs := own[len(own)-1], falls(own), falls(other)
	if len(resets) > 1 {
		return k
	}
	reset := fall{from: math.MaxInt64, to: own[0].t} // none since then
	if len(resets) > 0 {
		reset = resets[0]
	}
	j := i
	for ; j < len(other) && (j == 0 || other[j].t-other[j-1].t <= Reach); j++ {
		x := other[j]
		seen := sort.Search(len(theirs), func(n int) bool { return theirs[n].to > x.t })
		same := seen > 0 && theirs[seen-1].to >= reset.from-Skew
		switch {
		case seen > 1:
			return k
		case seen > 0 && (theirs[0].from > reset.to+Skew || len(resets) == 0 && theirs[0].v <= last.v):
			return x.k // behind a reset that own has not seen
		case len(resets) > 0 && !same && seen < len(theirs) && theirs[seen].from <= reset.to+Skew:
			// the reset that own has seen is still to come
		case x.v >= last.v:
			return x.k
		case x.t > last.t+Skew:
			return k
		}
	}
	if i > 0 && other[i].t-other[i-1].t <= Reach { // the rest is not known yet
		return other[j-1].k + 1
	}
	return k
}
