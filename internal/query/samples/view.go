package samples

import (
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/temporality"
)

// view is how a function sees the samples of series.
type view struct {
	from   int64 // ms: the first sample that it sees
	unread int64 // ms: as of setResetHints
	known  int64 // ms: all points that end from here on were read
	starts bool  // it gets start timestamps
	totals bool  // it reads series of delta temporality as running totals
	ranges bool  // it reads ranges of samples, and not the values of a subquery
}

// viewOf returns the view of a match that the function of the hints has.
func (s *Reader) viewOf(m *lookup.Match, hints *storage.SelectHints) *view {
	out := &view{from: m.MinT, known: m.MinT, unread: m.Unread, starts: true}
	if m.Replicas != nil {
		out.from, out.known = m.Replicas.MinT, m.Replicas.MinT // some before are left out
	}
	if hints != nil && temporality.Functions(hints.Func) {
		out.starts, out.totals, out.ranges = s.settings.Starts, m.Totals != nil, hints.Range > 0
	}
	if m.Totals != nil {
		out.from = m.Totals.From
	}
	return out
}

// of returns what is seen of the samples of a series.
func (w *view) of(lset labels.Labels, p points) points {
	switch {
	case w.totals && temporality.Has(lset):
		p = p.totals(w.known, w.ranges)
	case !w.starts && p.h == nil:
		p.st = nil
	case !w.starts:
		p.st = make([]int64, len(p.t))
	}
	p.setResetHints(w.from, w.unread)
	first, _ := between(p.t, w.from, math.MaxInt64)
	return p.slice(first, len(p.t))
}
