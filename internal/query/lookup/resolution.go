package lookup

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/store/replica"
)

// Resolution is a match as the planner needs it: the series by labels, with their places.
type Resolution struct {
	Scope
	Series    []ResolvedSeries // by labels, distinct; those that may have a sample in the range
	HasHists  bool             // a series has native histograms in an object that overlaps the range
	HasDeltas bool             // a series has delta temporality
	Starts    bool             // an object has start timestamps
	Samples   int64            // float samples in range, about: those of a series are taken to be evenly spaced in an object

	// Replicas are what the series consist of, parallel to them, each list in the order of the
	// replicas. nil: each series is shown as it is stored.
	Replicas [][]ResolvedSeries
	Rule     replica.Rule // that chooses among them

	of *Match // the match, if its series are in the same order; nil otherwise
}

// ResolvedSeries is one series of a resolution.
type ResolvedSeries struct {
	Series
	At []Place // ascending objects; those of replicas may be of one object
}

// Place identifies the row of a series in an object. There are as many as series times objects.
type Place struct {
	Object int32 // position in the objects
	Row    int32 // in the segment or the series table
}

// Floats returns the number of float samples at a place and, in a block, the first of their rows of
// its sample files, counted over all of them; in a segment first is -1.
func (s *Scope) Floats(p Place) (first, n int64) {
	first, n = s.Tables[p.Object].Floats(int(p.Row))
	if s.Objects[p.Object].Footer.Meta == nil {
		first = -1
	}
	return first, n
}

// Hists returns the number of native histograms at a place.
func (s *Scope) Hists(p Place) int64 {
	_, n := s.Tables[p.Object].Hists(int(p.Row))
	return n
}

// Resolution orders the series by labels.
func (m *Match) Resolution() *Resolution {
	out := &Resolution{Scope: m.Scope, Series: make([]ResolvedSeries, len(m.Series)), HasDeltas: m.HasDeltas()}
	counts := make([]int, len(m.Series))
	total := 0
	for i, members := range m.Rows {
		total += len(members)
		o := &m.Objects[i]
		out.Starts = out.Starts || len(members) > 0 && (o.Footer.HasST || o.Footer.Meta != nil && o.Footer.Meta.HasST)
		for _, x := range members {
			counts[x.Series]++
		}
	}
	places := make([]Place, total)
	for i, n := range counts {
		out.Series[i].Series = m.Series[i]
		out.Series[i].At, places = places[:0:n], places[n:]
	}
	for i, members := range m.Rows {
		t := m.Tables[i]
		for _, x := range members {
			s := &out.Series[x.Series]
			_, n := t.Floats(int(x.N))
			_, hists := t.Hists(int(x.N))
			out.HasHists = out.HasHists || hists > 0
			from, upto := t.Times(int(x.N))
			if lo, hi := max(from, m.MinT), min(upto, m.MaxT); n > 0 && (lo > from || hi < upto) {
				n = 1 + int64(float64(n-1)*float64(hi-lo)/float64(max(1, upto-from)))
			}
			out.Samples += n
			s.At = append(s.At, Place{int32(i), x.N})
		}
	}
	if m.Replicas != nil {
		out.group(m.Replicas)
		return out
	}
	if m.order == nil && m.keepOrder == nil {
		byLabels := func(a, b ResolvedSeries) int { return labels.Compare(a.Labels, b.Labels) }
		if slices.IsSortedFunc(out.Series, byLabels) { // as most objects have them
			out.of = m
		} else {
			slices.SortFunc(out.Series, byLabels)
		}
		return out
	}
	sorted := make([]ResolvedSeries, len(out.Series))
	if m.order == nil {
		m.order = make([]int32, len(m.Series))
		for i := range m.order {
			m.order[i] = int32(i)
		}
		slices.SortFunc(m.order, func(a, b int32) int { return labels.Compare(m.Series[a].Labels, m.Series[b].Labels) })
		m.keepOrder(m.order)
	}
	for i, k := range m.order {
		sorted[i] = out.Series[k]
	}
	out.Series = sorted
	return out
}

// fewSeries is the number of series whose order in the objects is not worth knowing.
const fewSeries = 16

// group replaces the series of a resolution by those that are shown of their replicas.
func (r *Resolution) group(of *Replicas) {
	groups := slices.SortedFunc(slices.Values(of.Groups), func(a, b Group) int { return labels.Compare(a.Labels, b.Labels) })
	stored := r.Series
	r.Series, r.Replicas, r.Rule = make([]ResolvedSeries, len(groups)), make([][]ResolvedSeries, len(groups)), of.Rule
	for i, g := range groups {
		members := stored[g.From:g.To]
		s := ResolvedSeries{Series: Series{Labels: g.Labels}, At: members[0].At}
		for k := range members {
			s.Tombstones = append(s.Tombstones, members[k].Tombstones...)
			if k > 0 {
				s.At = append(s.At[:len(s.At):len(s.At)], members[k].At...)
			}
		}
		slices.SortStableFunc(s.At, func(a, b Place) int { return cmp.Compare(a.Object, b.Object) })
		r.Series[i], r.Replicas[i] = s, members
	}
}

// Match returns the match of the series at some positions, in [mint, maxt] (ms). Its series are
// parallel to the positions.
func (r *Resolution) Match(positions []int, mint, maxt int64) *Match {
	if r.Replicas != nil {
		of := &Replicas{Rule: r.Rule, MinT: mint, MaxT: maxt, Groups: make([]Group, len(positions))}
		var stored []ResolvedSeries
		for i, w := range positions {
			of.Groups[i] = Group{r.Series[w].Labels, len(stored), len(stored) + len(r.Replicas[w])}
			stored = append(stored, r.Replicas[w]...)
		}
		all := make([]int, len(stored))
		for i := range all {
			all[i] = i
		}
		m := r.match(stored, all, mint-replica.Around, maxt+replica.Around)
		m.Replicas = of
		return m
	}
	if r.of != nil && r.all(positions) {
		return &Match{Scope: r.Scope, MinT: mint, MaxT: maxt, Series: r.of.Series, Rows: slices.Clone(r.of.Rows)}
	}
	return r.match(r.Series, positions, mint, maxt)
}

// all reports whether positions are those of all series, in order.
func (r *Resolution) all(positions []int) bool {
	for i, w := range positions {
		if i != w {
			return false
		}
	}
	return len(positions) == len(r.Series)
}

// match returns the match of some of series.
func (r *Resolution) match(series []ResolvedSeries, positions []int, mint, maxt int64) *Match {
	m := &Match{Scope: r.Scope, MinT: mint, MaxT: maxt, Series: make([]Series, len(positions)), Rows: make([][]Row, len(r.Objects))}
	counts, total := make([]int, len(r.Objects)), 0
	for _, w := range positions {
		for _, p := range series[w].At {
			counts[p.Object]++
		}
		total += len(series[w].At)
	}
	room := make([]Row, total)
	for i, n := range counts {
		m.Rows[i], room = room[:0:n], room[n:]
	}
	for i, w := range positions {
		x := &series[w]
		m.Series[i] = x.Series
		for _, p := range x.At {
			m.Rows[p.Object] = append(m.Rows[p.Object], Row{int32(i), p.Row})
		}
	}
	byRow := func(a, b Row) int { return cmp.Compare(a.N, b.N) }
	for _, members := range m.Rows {
		if !slices.IsSortedFunc(members, byRow) { // most objects have the series in the order of labels
			slices.SortFunc(members, byRow)
		}
	}
	return m
}

// Estimate is about how many samples a series has in [mint, maxt] (ms).
func (r *Resolution) Estimate(series int, mint, maxt int64) (n int64) {
	if h := r.Series[series].Head; h != nil {
		n = int64(len(h.T))
	}
	for _, p := range r.Series[series].At {
		_, floats := r.Floats(p)
		n += r.Objects[p.Object].Footer.Estimate(floats, mint, maxt)
	}
	return n
}

// Largest is the object with most samples. Objects are sorted alike, so its order of the series is
// that of the others.
func (r *Resolution) Largest() int {
	samples := make([]int64, len(r.Objects))
	for i := range r.Series {
		for _, p := range r.Series[i].At {
			_, n := r.Floats(p)
			samples[p.Object] += n
		}
	}
	most := 0
	for i, n := range samples {
		if n > samples[most] {
			most = i
		}
	}
	return most
}

// Place orders series as an object has them, from 1 on. Series that the object does not have come
// last.
func (s *ResolvedSeries) Place(object int) int64 {
	if i := s.In(object); i >= 0 {
		return 1 + int64(s.At[i].Row)
	}
	return math.MaxInt64
}

// In returns the position in at of an object, -1 if it has nothing of the series.
func (s *ResolvedSeries) In(object int) int {
	i, ok := slices.BinarySearchFunc(s.At, object, func(p Place, object int) int { return int(p.Object) - object })
	if !ok {
		return -1
	}
	return i
}
