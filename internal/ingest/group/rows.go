package group

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Sorter sorts windows into the rows of segments. It is reused; one goroutine at a time uses it.
type Sorter struct {
	set rankSet
	of  []uint32 // by float sample: the rank of its series, then its row
	at  []uint32 // by row: where its next float sample goes

	// of the batch
	rows   []series.Ref
	end    []int
	ts, st []int64
	v      []float64
}

// Room returns the number of float samples for which there is memory.
func (s *Sorter) Room() int { return cap(s.of) }

// sized returns a slice of length n, in the memory of s if that suffices, with any elements.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// Rows sorts the window's samples into the rows of a segment: by series, then by time; of equal
// times the last to arrive stays. order covers view. The batch is valid until the next call.
func (s *Sorter) Rows(w *Window, view *series.View, order *series.Order) *segment.Batch {
	slices.SortStableFunc(w.hists, func(x, y remotewrite.Hist) int {
		return cmp.Or(cmp.Compare(order.Rank(x.Ref), order.Rank(y.Ref)), cmp.Compare(x.T, y.T))
	})
	w.hists = keepLast(w.hists, func(x, y *remotewrite.Hist) bool { return x.Ref == y.Ref && x.T == y.T })
	slices.SortStableFunc(w.exemplars, func(x, y remotewrite.Exemplar) int {
		return cmp.Or(cmp.Compare(order.Rank(x.Ref), order.Rank(y.Ref)), cmp.Compare(x.Ts, y.Ts))
	})
	w.exemplars = slices.CompactFunc(w.exemplars, repeats)
	s.set.reset(order.Len())
	s.of = sized(s.of, w.floats)
	i := 0
	for _, r := range w.runs {
		for k := range r.floats {
			rank := order.Rank(r.floats[k].Ref)
			s.set.add(rank)
			s.of[i] = rank
			i++
		}
	}
	for _, h := range w.hists {
		s.set.add(order.Rank(h.Ref))
	}
	for _, e := range w.exemplars {
		s.set.add(order.Rank(e.Ref))
	}
	n := s.set.number()
	s.rows, s.end = sized(s.rows, n), sized(s.end, n)
	s.ts, s.v = sized(s.ts, w.floats), sized(s.v, w.floats)
	b := &segment.Batch{View: view, Order: order, Rows: s.rows, End: s.end, TS: s.ts, V: s.v, Metadata: w.metadata}
	if w.started {
		s.st = sized(s.st, w.floats)
		b.ST = s.st
	}
	for _, h := range w.hists {
		b.Rows[s.set.index(order.Rank(h.Ref))] = h.Ref
	}
	for _, e := range w.exemplars {
		b.Rows[s.set.index(order.Rank(e.Ref))] = e.Ref
	}
	s.scatter(b, w)
	if n < w.floats || len(w.hists)+len(w.exemplars) > 0 { // else each row has one sample
		closeRows(b, w)
	}
	return b
}

// repeats reports whether an exemplar is another one again: at the same time, or both have no time
// of their own.
func repeats(x, y remotewrite.Exemplar) bool {
	return x.Ref == y.Ref && (x.Ts == y.Ts || !x.HasTs && !y.HasTs) &&
		math.Float64bits(x.Value) == math.Float64bits(y.Value) && labels.Equal(x.Labels, y.Labels)
}

// scatter copies a window's float samples to their rows, in order of arrival, and sets b.End to the
// ends of the rows.
func (s *Sorter) scatter(b *segment.Batch, w *Window) {
	s.at = sized(s.at, len(b.Rows)+1) // samples by row, then where the next sample of a row goes
	clear(s.at)
	for i, rank := range s.of {
		k := s.set.index(rank)
		s.of[i] = uint32(k)
		s.at[k+1]++
	}
	for i := 1; i < len(s.at); i++ {
		s.at[i] += s.at[i-1]
	}
	i := 0
	for _, r := range w.runs {
		for n := range r.floats {
			f, k := &r.floats[n], s.of[i]
			j := s.at[k]
			s.at[k]++
			b.Rows[k], b.TS[j], b.V[j] = f.Ref, f.T, f.V
			if b.ST != nil {
				b.ST[j] = 0
				if r.starts != nil {
					b.ST[j] = r.starts[n]
				}
			}
			i++
		}
	}
	for k := range b.End {
		b.End[k] = int(s.at[k])
	}
}

// closeRows sorts each row by time, drops what a later sample replaced, and gives the rows their
// histograms and exemplars.
func closeRows(b *segment.Batch, w *Window) {
	n, from := 0, 0 // samples kept; samples seen
	hists, exemplars := w.hists, w.exemplars
	for row, ref := range b.Rows {
		to := b.End[row]
		n = sortRow(b, n, from, to)
		from, b.End[row] = to, n
		var hs []segment.Hist
		for len(hists) > 0 && hists[0].Ref == ref {
			hs, hists = append(hs, hists[0].Hist), hists[1:]
		}
		if hs != nil {
			b.Hists = append(b.Hists, segment.RowHists{Row: row, Samples: hs})
		}
		var es []exemplar.Exemplar
		for len(exemplars) > 0 && exemplars[0].Ref == ref {
			exemplars[0].HasTs = true
			es, exemplars = append(es, exemplars[0].Exemplar), exemplars[1:]
		}
		if es != nil {
			b.Exemplars = append(b.Exemplars, segment.RowExemplars{Row: row, Exemplars: es})
		}
	}
	b.TS, b.V = b.TS[:n], b.V[:n]
	if b.ST != nil {
		b.ST = b.ST[:n]
	}
}

// sortRow sorts the samples [from, to) by time, keeps the last to arrive of equal times, and moves
// them to n. It returns the end of what it kept.
func sortRow(b *segment.Batch, n, from, to int) int {
	ascending := true
	for i := from + 1; i < to; i++ {
		if b.TS[i] <= b.TS[i-1] {
			ascending = false
			break
		}
	}
	if !ascending {
		return sortUnordered(b, n, from, to)
	}
	if n != from {
		copy(b.TS[n:], b.TS[from:to])
		copy(b.V[n:], b.V[from:to])
		if b.ST != nil {
			copy(b.ST[n:], b.ST[from:to])
		}
	}
	return n + to - from
}

func sortUnordered(b *segment.Batch, n, from, to int) int {
	row := make([]segment.Float, to-from)
	for i := range row {
		row[i] = segment.Float{T: b.TS[from+i], V: b.V[from+i]}
		if b.ST != nil {
			row[i].ST = b.ST[from+i]
		}
	}
	slices.SortStableFunc(row, func(x, y segment.Float) int { return cmp.Compare(x.T, y.T) })
	row = keepLast(row, func(x, y *segment.Float) bool { return x.T == y.T })
	for i, f := range row {
		b.TS[n+i], b.V[n+i] = f.T, f.V
		if b.ST != nil {
			b.ST[n+i] = f.ST
		}
	}
	return n + len(row)
}

// rankSet is a set of ranks that numbers its members in ascending order. It is a bit map, so that a
// small batch among many known series costs a bit for each of them and not a counter.
type rankSet struct {
	words  []uint64
	before []uint32 // by word: members in the words before it; set by number
}

// reset empties the set and makes it one of ranks below a number.
func (s *rankSet) reset(ranks int) {
	n := (ranks + 63) / 64
	s.words, s.before = sized(s.words, n), sized(s.before, n)
	clear(s.words)
}

func (s *rankSet) add(rank uint32) { s.words[rank/64] |= 1 << (rank % 64) }

// number fixes the members' numbers and returns how many there are.
func (s *rankSet) number() int {
	n := 0
	for i, w := range s.words {
		s.before[i] = uint32(n)
		n += bits.OnesCount64(w)
	}
	return n
}

// index returns the number of a member.
func (s *rankSet) index(rank uint32) int {
	w := s.words[rank/64] & (1<<(rank%64) - 1)
	return int(s.before[rank/64]) + bits.OnesCount64(w)
}
