package samples

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/series"
)

// assumed is the first value of a counter that began before the points that were read, as a
// multiple of their sum. Prometheus' rate does not extrapolate to times at which a counter would be
// negative. With twice the increase in the range, it never would be: rate extrapolates by at most
// 1.1 times the mean distance of two samples.
const assumed = 2

// totals returns the running totals of points of delta temporality, at the same times, as functions
// of counters read them. Each has the start timestamp of its counter (series.Chain). A counter
// that may have begun before the points that are known begins with a multiple of what they count.
//
// Without ranges there is one counter, since who reads its values one by one sees no start
// timestamps. p shares its memory with others and stays as it is. hold is called before totals take
// memory, with samples as Collector.hold counts them, because those of histograms may have many more
// buckets than the points.
func (p points) totals(known int64, ranges bool, hold func(samples int64) error) (points, error) {
	if err := hold(int64(len(p.t))); err != nil {
		return points{}, err
	}
	passed := func(i int) bool { return p.passed(i) }
	chains := series.Chains(p.t, p.st, known, passed)
	if !ranges && len(chains) > 0 {
		chains = []series.Chain{{To: len(p.t), Older: true}}
	}
	out := points{t: p.t, v: make([]float64, len(p.t)), st: make([]int64, len(p.t))}
	if p.h != nil {
		out.h = make([]*histPoint, len(p.t))
	}
	for _, c := range chains {
		var sum float64
		var hist *histogram.FloatHistogram
		if c.Older {
			sum, hist = p.past(c)
		}
		for i := c.From; i < c.To; i++ {
			out.st[i] = c.Start
			switch h := p.at(i); {
			case passed(i):
				out.v[i], out.st[i] = p.v[i], 0
				if h != nil {
					out.h[i] = h
				}
			case h == nil:
				sum += p.v[i]
				out.v[i] = sum
			default:
				hist = added(hist, h)
				if err := hold(int64(hist.Size() / histogramUnit)); err != nil {
					return points{}, err
				}
				out.h[i] = &histPoint{rank: h.rank, t: h.t, st: c.Start, fh: hist.Copy()}
			}
		}
	}
	return out, nil
}

// past returns what a counter is taken to have counted before its first point.
func (p points) past(c series.Chain) (sum float64, hist *histogram.FloatHistogram) {
	for i := c.From; i < c.To; i++ {
		switch h := p.at(i); {
		case p.passed(i):
		case h != nil:
			hist = added(hist, h)
		default:
			sum += assumed * math.Abs(p.v[i])
		}
	}
	if math.IsInf(sum, 0) {
		sum = 0
	}
	if hist != nil {
		hist.Mul(assumed)
		hist.CounterResetHint = histogram.UnknownCounterReset
	}
	return sum, hist
}

// added returns a sum of histograms with one more; sum may be nil, and is not valid afterwards.
// Histograms whose buckets cannot be added begin a new sum.
func added(sum *histogram.FloatHistogram, h *histPoint) *histogram.FloatHistogram {
	next := h.float(nil)
	next.CounterResetHint = histogram.UnknownCounterReset
	if sum == nil {
		return next
	}
	out, _, _, err := sum.Add(next)
	if err != nil {
		return next
	}
	out.CounterResetHint = histogram.UnknownCounterReset
	return out
}

// at returns the histogram at a position, nil if there is a float.
func (p points) at(i int) *histPoint {
	if p.h == nil {
		return nil
	}
	return p.h[i]
}

// passed reports whether a point counts nothing: it is a stale marker, or not a number.
func (p points) passed(i int) bool {
	h := p.at(i)
	switch {
	case h == nil:
		return math.IsNaN(p.v[i])
	case h.h != nil:
		return value.IsStaleNaN(h.h.Sum)
	default:
		return value.IsStaleNaN(h.fh.Sum)
	}
}
