// Package layout turns batches into the rows of segments.
package layout

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// Window is what batches add to one 2h window, in order of arrival.
type Window struct {
	Start     key.Window
	refs      []series.Ref
	ts        []int64
	v         []float64
	st        []int64 // aligned with ts; nil if no sample has a start timestamp
	hists     []remotewrite.Hist
	exemplars []remotewrite.Exemplar
	metadata  []segment.Metadata
}

// Windows divides batches of one generation by window, ascending. Metadata, which has no time of
// its own, goes with the last window, or with the window of now (ms) if there is no sample at all.
func Windows(bs []*remotewrite.Batch, now int64) []*Window {
	byStart := map[key.Window]*Window{}
	var last *Window
	at := func(t int64) *Window {
		if last != nil && t >= int64(last.Start) && t < last.Start.End() {
			return last
		}
		s := key.WindowOf(t)
		if byStart[s] == nil {
			byStart[s] = &Window{Start: s}
		}
		last = byStart[s]
		return last
	}
	n := 0
	for _, b := range bs {
		n += len(b.Floats)
	}
	var meta []segment.Metadata
	for _, b := range bs {
		for i, f := range b.Floats {
			w := at(f.T)
			if w.refs == nil && len(byStart) == 1 { // mostly there is one window only
				w.refs, w.ts, w.v = make([]series.Ref, 0, n), make([]int64, 0, n), make([]float64, 0, n)
			}
			w.refs, w.ts, w.v = append(w.refs, f.Ref), append(w.ts, f.T), append(w.v, f.V)
			if b.Starts != nil && b.Starts[i] != 0 && w.st == nil {
				w.st = make([]int64, len(w.ts)-1, n)
			}
			if w.st != nil {
				st := int64(0)
				if b.Starts != nil {
					st = b.Starts[i]
				}
				w.st = append(w.st, st)
			}
		}
		for _, h := range b.Hists {
			w := at(h.T)
			w.hists = append(w.hists, h)
		}
		for _, e := range b.Exemplars {
			w := at(e.Ts)
			w.exemplars = append(w.exemplars, e)
		}
		meta = append(meta, b.Metadata...)
	}
	if len(meta) > 0 && len(byStart) == 0 {
		at(now)
	}
	out := make([]*Window, 0, len(byStart))
	for _, w := range byStart {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Window) int { return cmp.Compare(a.Start, b.Start) })
	if len(meta) > 0 {
		out[len(out)-1].metadata = newestMetadata(meta)
	}
	return out
}

// newestMetadata keeps the last description of each metric family, sorted by family.
func newestMetadata(ms []segment.Metadata) []segment.Metadata {
	slices.SortStableFunc(ms, func(a, b segment.Metadata) int { return strings.Compare(a.Metric, b.Metric) })
	return keepLast(ms, func(a, b *segment.Metadata) bool { return a.Metric == b.Metric })
}

// keepLast reduces every run of equal neighbours to its last element, in place.
func keepLast[T any](s []T, equal func(a, b *T) bool) []T {
	n := 0
	for i := range s {
		if n > 0 && equal(&s[n-1], &s[i]) {
			n--
		}
		s[n] = s[i]
		n++
	}
	return s[:n]
}

// Rows sorts the window's samples into the rows of a segment: by series, then by time; of equal
// times the last to arrive stays. order covers view.
func (w *Window) Rows(view *series.View, order *series.Order) *segment.Batch {
	b := &segment.Batch{View: view, Metadata: w.metadata}
	rank := func(r series.Ref) uint32 { return order.Rank(r) }
	slices.SortStableFunc(w.hists, func(x, y remotewrite.Hist) int {
		return cmp.Or(cmp.Compare(rank(x.Ref), rank(y.Ref)), cmp.Compare(x.T, y.T))
	})
	w.hists = keepLast(w.hists, func(x, y *remotewrite.Hist) bool { return x.Ref == y.Ref && x.T == y.T })
	slices.SortStableFunc(w.exemplars, func(x, y remotewrite.Exemplar) int {
		return cmp.Or(cmp.Compare(rank(x.Ref), rank(y.Ref)), cmp.Compare(x.Ts, y.Ts))
	})
	rows := newRankSet(order.Len())
	for _, r := range w.refs {
		rows.add(rank(r))
	}
	for _, h := range w.hists {
		rows.add(rank(h.Ref))
	}
	for _, e := range w.exemplars {
		rows.add(rank(e.Ref))
	}
	n := rows.number()
	b.Rows, b.End = make([]series.Ref, n), make([]int, n)
	for _, h := range w.hists {
		b.Rows[rows.index(rank(h.Ref))] = h.Ref
	}
	for _, e := range w.exemplars {
		b.Rows[rows.index(rank(e.Ref))] = e.Ref
	}
	scatter(b, w, func(r series.Ref) int { return rows.index(rank(r)) })
	closeRows(b, w)
	return b
}

// scatter copies a window's float samples to their rows, in order of arrival, and sets b.End to the
// ends of the rows.
func scatter(b *segment.Batch, w *Window, row func(series.Ref) int) {
	at := make([]uint32, len(b.Rows)+1) // samples by row, then where the next sample of a row goes
	of := make([]uint32, len(w.refs))   // row by sample
	for i, r := range w.refs {
		k := row(r)
		of[i], b.Rows[k] = uint32(k), r
		at[k+1]++
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	b.TS, b.V = make([]int64, len(w.ts)), make([]float64, len(w.ts))
	if w.st != nil {
		b.ST = make([]int64, len(w.ts))
	}
	for i, k := range of {
		j := at[k]
		at[k]++
		b.TS[j], b.V[j] = w.ts[i], w.v[i]
		if w.st != nil {
			b.ST[j] = w.st[i]
		}
	}
	for k := range b.End {
		b.End[k] = int(at[k])
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
