package lookup

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/store/catalog"
)

// Weighed is a series with what objects store of it in a range.
type Weighed struct {
	Labels  labels.Labels
	Samples int64   // floats and histograms; a sample that several objects have counts as often
	Bytes   float64 // the samples' share of their objects' bytes
	Last    int64   // ms; time of the last sample in the range, by the times of objects
}

// WeighedLabels returns the labels of a series.
func WeighedLabels(w *Weighed) labels.Labels { return w.Labels }

// Weigh returns the series that match one of sets and whose samples begin before the end of [mint,
// maxt] (ms, inclusive) and end after its begin in some object, by series tables alone. Of an
// object that is only in part in the range, samples are counted as if they were evenly spaced, and
// up to the end of the range if the object goes beyond it.
// Series whose samples in the range are all deleted are left out.
func (s *Tables) Weigh(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) ([]Weighed, error) {
	m, err := s.Match(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	out := make([]Weighed, len(m.Series))
	for i := range out {
		out[i].Labels = m.Series[i].Labels
	}
	var gone tombstones.Intervals
	for i, rows := range m.Rows {
		o, t := &m.Objects[i], m.Tables[i]
		share := 0.0 // bytes of a sample
		if o.Footer.Samples > 0 {
			share = float64(o.Bytes()) / float64(o.Footer.Samples)
		}
		for _, x := range rows {
			_, floats := t.Floats(int(x.N))
			_, hists := t.Hists(int(x.N))
			from, upto := t.Times(int(x.N))
			gone = m.Deletions.Gone(gone[:0], i, m.Series[x.Series].Tombstones)
			n := part(floats+hists, from, upto, max(from, mint), min(upto, maxt), gone)
			w := &out[x.Series]
			w.Samples += n
			w.Bytes += share * float64(n)
			if n > 0 {
				w.Last = max(w.Last, before(min(upto, maxt), gone))
			}
		}
	}
	return slices.DeleteFunc(out, func(w Weighed) bool { return w.Samples == 0 }), nil
}

// before is the latest time up to hi that is in none of the ascending intervals gone (all in ms,
// inclusive).
func before(hi int64, gone tombstones.Intervals) int64 {
	for _, g := range slices.Backward(gone) {
		if g.Mint <= hi && hi <= g.Maxt {
			hi = g.Mint - 1
		}
	}
	return hi
}

// part is how many of n samples that are evenly spaced in [from, upto] lie in [lo, hi], a part of
// it, and in none of the ascending intervals gone (all in ms, inclusive). It is at least 1 unless
// the intervals cover [lo, hi].
func part(n, from, upto, lo, hi int64, gone tombstones.Intervals) int64 {
	left := hi - lo + 1
	for _, g := range gone {
		if a, b := max(g.Mint, lo), min(g.Maxt, hi); a <= b {
			left -= b - a + 1
		}
	}
	switch whole := upto - from + 1; {
	case left <= 0:
		return 0
	case left == whole:
		return n
	default:
		return max(1, int64(float64(n)*float64(left)/float64(whole)))
	}
}
