package lookup

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
)

// Resolution is a match as the planner needs it: the series by labels, with their ids and places.
type Resolution struct {
	Scope
	Series   []ResolvedSeries // by labels, distinct; those that may have a sample in the range
	IDsAgree bool             // in all objects equal ids stand for equal labels, and equal labels for equal ids
	Hists    bool             // a series has native histograms in an object that overlaps the range
	Starts   bool             // an object has start timestamps
	Samples  int64            // float samples in range, about: those of a series are taken to be evenly spaced in an object
}

// ResolvedSeries is one series of a resolution.
type ResolvedSeries struct {
	Series
	ID uint64  // as stored; in the first of its objects, if they do not agree
	At []Place // ascending objects
}

// Place identifies the rows of a series in an object.
type Place struct {
	Object   int   // position in the objects
	Row      int64 // in the segment or the series table
	First, N int64 // float samples: rows of the block's sample files, counted over all of them; in a segment first is -1
	Hists    int64 // native histograms
}

// Resolution orders the series by labels.
func (m *Match) Resolution() *Resolution {
	out := &Resolution{Scope: m.Scope, Series: make([]ResolvedSeries, len(m.Series))}
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
	out.IDsAgree = true
	owner := make(map[uint64]int32, len(m.Series))
	for i, members := range m.Rows {
		t, inBlock := m.Tables[i], m.Objects[i].Footer.Meta != nil
		for _, x := range members {
			s, id := &out.Series[x.Series], t.ID(int(x.N))
			if len(s.At) > 0 {
				out.IDsAgree = out.IDsAgree && s.ID == id
			} else {
				s.ID = id
				_, taken := owner[id]
				out.IDsAgree = out.IDsAgree && !taken
				owner[id] = x.Series
			}
			p := Place{Object: i, Row: int64(x.N), First: -1}
			first, n := t.Floats(int(x.N))
			if p.N = n; inBlock {
				p.First = first
			}
			_, p.Hists = t.Hists(int(x.N))
			out.Hists = out.Hists || p.Hists > 0
			from, upto := t.Times(int(x.N))
			if lo, hi := max(from, m.MinT), min(upto, m.MaxT); n > 0 && (lo > from || hi < upto) {
				n = 1 + int64(float64(n-1)*float64(hi-lo)/float64(max(1, upto-from)))
			}
			out.Samples += n
			s.At = append(s.At, p)
		}
	}
	slices.SortFunc(out.Series, func(a, b ResolvedSeries) int { return labels.Compare(a.Labels, b.Labels) })
	return out
}

// Match returns the match of the series at some positions, in [mint, maxt] (ms). Its series are
// parallel to the positions.
func (r *Resolution) Match(positions []int, mint, maxt int64) *Match {
	m := &Match{Scope: r.Scope, MinT: mint, MaxT: maxt, Series: make([]Series, len(positions)), Rows: make([][]Row, len(r.Objects))}
	for i, w := range positions {
		x := &r.Series[w]
		m.Series[i] = x.Series
		for _, p := range x.At {
			m.Rows[p.Object] = append(m.Rows[p.Object], Row{int32(i), int32(p.Row)})
		}
	}
	for _, members := range m.Rows {
		slices.SortFunc(members, func(a, b Row) int { return cmp.Compare(a.N, b.N) })
	}
	return m
}

// Estimate is about how many samples a series has in [mint, maxt] (ms).
func (r *Resolution) Estimate(series int, mint, maxt int64) (n int64) {
	for _, p := range r.Series[series].At {
		n += r.Objects[p.Object].Footer.Estimate(p.N, mint, maxt)
	}
	return n
}

// Largest is the object with most samples. Objects are sorted alike, so its order of the series is
// that of the others.
func (r *Resolution) Largest() int {
	samples := make([]int64, len(r.Objects))
	for i := range r.Series {
		for _, p := range r.Series[i].At {
			samples[p.Object] += p.N
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
		return 1 + s.At[i].Row
	}
	return math.MaxInt64
}

// In returns the position in at of an object, -1 if it has nothing of the series.
func (s *ResolvedSeries) In(object int) int {
	i, ok := slices.BinarySearchFunc(s.At, object, func(p Place, object int) int { return p.Object - object })
	if !ok {
		return -1
	}
	return i
}
