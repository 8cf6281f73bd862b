package series

import (
	"github.com/prometheus/prometheus/model/labels"
)

// TemporalityLabel is the label of series that are not cumulative, and DeltaTemporality its value
// for delta temporality: a sample of such a series (a point) counts only what happened between its
// start timestamp and its time, as in OpenTelemetry's data model, while functions of counters need
// running totals.
const (
	TemporalityLabel = "__temporality__"
	DeltaTemporality = "delta"
)

// IsDelta reports whether a series with these labels has delta temporality.
func IsDelta(l labels.Labels) bool { return l.Get(TemporalityLabel) == DeltaTemporality }

// ReadsTotals reports whether a function of PromQL reads samples as the totals of a counter. These
// are the functions that use start timestamps.
func ReadsTotals(name string) bool {
	return name == "rate" || name == "irate" || name == "increase" || name == "resets"
}

// A Chain is the points [From, To), of which each begins where the one before ended. It is what one
// counter has counted since it began, as far as is known.
type Chain struct {
	From, To int
	Start    int64 // ms: when the counter began at 0; 0 is unknown
	// Older: the counter may have begun before the points that are known, so that its total has an
	// unknown part.
	Older bool
}

// Chains divides the points of a series. t are their times and st their start timestamps, both in
// ms and parallel; st may be nil, and 0 is unknown. passed reports points that count nothing, such
// as stale markers; they belong to the chain around them. All points that end at known (ms) or later
// are there.
//
// A new chain begins where a point starts after the end of the one before. The points between are
// missing, because nothing was counted or the counter was away: so their sum is 0, or is lost. A
// point that starts before that end, at an unknown time, or not before its own time, which is how
// OpenTelemetry marks an unknown one, continues the chain.
func Chains(t, st []int64, known int64, passed func(i int) bool) (out []Chain) {
	last := -1 // point that counts
	for i := range t {
		if passed(i) {
			continue
		}
		start := int64(0)
		if st != nil && st[i] < t[i] {
			start = st[i]
		}
		switch {
		case last < 0:
			out = append(out, Chain{Start: start, Older: start <= known})
		case start > t[last]:
			out[len(out)-1].To = i
			out = append(out, Chain{From: i, Start: start})
		}
		last = i
	}
	if len(out) > 0 {
		out[len(out)-1].To = len(t)
	}
	return out
}
