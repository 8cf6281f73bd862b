package samples

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
)

// setResetHints gives every histogram the hint that its neighbours justify. The sender's hint about
// the previous sample is dropped, because samples of other senders may lie between. NotCounterReset
// is given where the previous sample is known and no count has fallen since. Everything else is
// unknown, so that the engine detects resets, as with upstream's storage.
//
// Samples before mint (ms) are only compared with, if they are later than unread (ms), before which
// there may be samples that were not read. They are dropped. Without histograms there is nothing to
// do.
func (p *points) setResetHints(mint, unread int64) {
	if p.h == nil {
		return
	}
	first := 0
	for first < len(p.t) && p.t[first] < mint {
		first++
	}
	var d resetDetector
	if first > 0 && p.t[first-1] > unread {
		d.hint(p.h[first-1])
	}
	*p = points{t: p.t[first:], v: p.v[first:], st: p.st[first:], h: p.h[first:]}
	for _, h := range p.h {
		hint := d.hint(h)
		switch {
		case h == nil:
		case h.h != nil:
			h.h.CounterResetHint = hint
		default:
			h.fh.CounterResetHint = hint
		}
	}
}

// resetDetector compares each histogram of a series with the one before.
type resetDetector struct {
	last      *histPoint // nil: the sample before is unknown, a float, a gauge or a stale marker
	prev, cur *histogram.FloatHistogram
}

// hint returns the hint of the next sample; nil is a float.
func (d *resetDetector) hint(h *histPoint) histogram.CounterResetHint {
	if h == nil {
		d.last = nil
		return histogram.UnknownCounterReset
	}
	last := d.last
	d.last = nil
	var said histogram.CounterResetHint // by the sender
	var sum float64                     // it marks staleness
	if h.h != nil {
		said, sum = h.h.CounterResetHint, h.h.Sum
	} else {
		said, sum = h.fh.CounterResetHint, h.fh.Sum
	}
	switch {
	case said == histogram.GaugeType:
		return histogram.GaugeType
	case value.IsStaleNaN(sum):
		return histogram.UnknownCounterReset
	}
	d.prev, d.cur = d.cur, h.float(d.prev)
	d.cur.CounterResetHint = histogram.UnknownCounterReset // makes DetectReset look
	d.last = h
	if last != nil && said != histogram.CounterReset && (last.h == nil) == (h.h == nil) && !d.cur.DetectReset(d.prev) {
		return histogram.NotCounterReset
	}
	return histogram.UnknownCounterReset
}

// float returns a copy with float counts, in the memory of into if that is not nil.
func (h *histPoint) float(into *histogram.FloatHistogram) *histogram.FloatHistogram {
	if h.h != nil {
		return h.h.ToFloat(into)
	}
	if into == nil {
		return h.fh.Copy()
	}
	h.fh.CopyTo(into)
	return into
}
