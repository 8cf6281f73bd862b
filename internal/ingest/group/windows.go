package group

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// Window is what batches add to one 2h window, in order of arrival. It shares the batches' memory.
type Window struct {
	Start     key.Window
	runs      []run
	floats    int  // in runs
	started   bool // a sample has a start timestamp
	hists     []remotewrite.Hist
	exemplars []remotewrite.Exemplar
	metadata  []segment.Metadata
}

// run is adjacent float samples of a batch. starts is aligned with them, or nil.
type run struct {
	floats []remotewrite.Float
	starts []int64
}

func (w *Window) has(t int64) bool { return t >= int64(w.Start) && t < w.Start.End() }

// add adds float samples of a batch: one that lies in the window, and those after it up to one that
// does not. It returns where the rest begins.
func (w *Window) add(b *remotewrite.Batch, from int) (to int) {
	for to = from + 1; to < len(b.Floats) && w.has(b.Floats[to].T); {
		to++
	}
	r := run{floats: b.Floats[from:to]}
	if b.Starts != nil {
		r.starts = b.Starts[from:to]
		w.started = w.started || slices.ContainsFunc(r.starts, func(st int64) bool { return st != 0 })
	}
	w.runs, w.floats = append(w.runs, r), w.floats+to-from
	return to
}

// Windows divides batches of one table by window, ascending. Metadata, which has no time of
// its own, goes with the last window, or with the window of now (ms) if there is no sample at all.
func Windows(bs []*remotewrite.Batch, now int64) []*Window {
	byStart := map[key.Window]*Window{}
	var last *Window
	at := func(t int64) *Window {
		if last != nil && last.has(t) {
			return last
		}
		s := key.WindowOf(t)
		if byStart[s] == nil {
			byStart[s] = &Window{Start: s}
		}
		last = byStart[s]
		return last
	}
	var meta []segment.Metadata
	for _, b := range bs {
		for i := 0; i < len(b.Floats); {
			i = at(b.Floats[i].T).add(b, i)
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
	out := slices.SortedFunc(maps.Values(byStart), func(a, b *Window) int { return cmp.Compare(a.Start, b.Start) })
	if len(meta) > 0 {
		// Keep the last description of each metric family, sorted by family.
		slices.SortStableFunc(meta, func(a, b segment.Metadata) int { return strings.Compare(a.Metric, b.Metric) })
		out[len(out)-1].metadata = keepLast(meta, func(a, b *segment.Metadata) bool { return a.Metric == b.Metric })
	}
	return out
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
