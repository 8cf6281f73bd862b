package samples

import (
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/format/series"
)

// view is how a function sees the samples of series.
type view struct {
	from   int64 // ms: the first sample that it sees
	unread int64 // ms: as of setResetHints
	known  int64 // ms: all points that end from here on were read
	starts bool  // it gets start timestamps
	totals bool  // it reads series of delta temporality as running totals
	ranges bool  // it reads ranges of samples, and not the values of a subquery
	// hold counts samples that are made, before they are.
	hold func(samples int64) error
}

// view returns how the function of the hints sees the match, which was read.
func (r *Collector) view(hints *storage.SelectHints) *view {
	m := r.Match
	out := &view{from: m.MinT, known: m.MinT, unread: m.Unread, starts: true, hold: r.hold}
	if m.Replicas != nil {
		out.from, out.known = m.Replicas.MinT, m.Replicas.MinT // some before are left out
	}
	if hints != nil && series.ReadsTotals(hints.Func) {
		out.starts, out.totals, out.ranges = r.reader.settings.Starts, m.Totals != nil, hints.Range > 0
	}
	if m.Totals != nil {
		out.from = m.Totals.From
	}
	return out
}

// of returns what is seen of the samples of a series.
func (w *view) of(lset labels.Labels, p points) (points, error) {
	switch {
	case w.totals && series.IsDelta(lset):
		var err error
		if p, err = p.totals(w.known, w.ranges, w.hold); err != nil {
			return points{}, err
		}
	case !w.starts && p.h == nil:
		p.st = nil
	case !w.starts:
		p.st = make([]int64, len(p.t))
	}
	p.setResetHints(w.from, w.unread)
	first, _ := between(p.t, w.from, math.MaxInt64)
	return p.slice(first, len(p.t)), nil
}
