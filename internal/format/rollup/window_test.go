package rollup

import (
	"math"

	"github.com/prometheus/prometheus/util/kahansum"
)

// maxExact is the largest magnitude up to which every whole number is a double: sums of whole
// numbers that stay below are not rounded.
const maxExact = 1 << 53

// Window summarizes the rows of one series over a range that consists of whole buckets. Add rows in
// order of time; missing buckets are empty ones. The zero value is an empty range. Where a method
// also returns exact, its value is bit for bit what upstream's function returns for the samples
// (NaN for any NaN) if exact is true; otherwise it may be rounded differently, and who needs the
// bits reads the samples. Values without that are always exact.
type Window struct {
	total Row
	rows  int       // with samples
	steps []float64 // what was reached before each reset; several resets in one bucket count as one
	many  bool      // a bucket had several resets
}

// Add appends the next row.
func (w *Window) Add(r Row) {
	t := &w.total
	t.Flags |= r.Flags
	if t.Stale += r.Stale; r.Stale > 0 {
		t.StaleT = r.StaleT
	}
	if r.Count == 0 {
		return
	}
	w.rows++
	w.addResets(&r)
	if w.rows == 1 {
		r.Flags, r.Stale, r.StaleT = t.Flags, t.Stale, t.StaleT
		*t = r
		return
	}
	if differ(r.First, t.Last) {
		t.Changes++
	}
	if r.Min < t.Min || math.IsNaN(t.Min) {
		t.Min = r.Min
	}
	if r.Max > t.Max || math.IsNaN(t.Max) {
		t.Max = r.Max
	}
	t.Sum, t.SumC = kahansum.Inc(r.Sum, t.Sum, t.SumC)
	t.SumC += r.SumC
	t.Count, t.NaNs, t.Changes, t.Resets = t.Count+r.Count, t.NaNs+r.NaNs, t.Changes+r.Changes, t.Resets+r.Resets
	t.Last, t.LastT = r.Last, r.LastT
}

// addResets accounts for the reset between the last row and r, if there is one, and those in r.
func (w *Window) addResets(r *Row) {
	if w.rows > 1 && r.First < w.total.Last {
		w.total.Resets++
		w.steps = append(w.steps, w.total.Last)
	}
	if r.Resets > 0 {
		w.steps = append(w.steps, r.ResetSum)
	}
	w.many = w.many || r.Resets > 1
}

// Count is count_over_time; 0 means that the series has no answer to any function of this range.
func (w *Window) Count() int64 { return w.total.Count }

// First and Last return the first and the last sample and their times (ms): first_over_time,
// last_over_time, and ts_of_ both.
func (w *Window) First() (int64, float64) { return w.total.FirstT, w.total.First }

// Last: see First.
func (w *Window) Last() (int64, float64) { return w.total.LastT, w.total.Last }

// Stale returns the time (ms) of the last stale marker, or 0. If it is later than the last sample,
// an instant selector at the end of the range finds nothing.
func (w *Window) Stale() int64 { return w.total.StaleT }

// Min and Max are min_over_time and max_over_time.
func (w *Window) Min() float64 { return w.total.Min }

// Max: see Min.
func (w *Window) Max() float64 { return w.total.Max }

// Changes and Resets are changes() and resets() of an engine that does not mind start timestamps
// (see HasStart).
func (w *Window) Changes() int64 { return w.total.Changes }

// Resets: see Changes.
func (w *Window) Resets() int64 { return w.total.Resets }

// HasStart reports whether samples have start timestamps.
func (w *Window) HasStart() bool { return w.total.Flags&FlagStart != 0 }

// whole reports whether n times the largest magnitude among the samples, which are whole numbers,
// is below maxExact.
func (w *Window) whole(n int64) bool {
	return w.total.Flags&FlagFraction == 0 && float64(n)*max(math.Abs(w.total.Min), math.Abs(w.total.Max)) <= maxExact
}

// sumsExact reports whether Sum and SumC are what upstream's summation of the samples arrives at:
// because it is that of one bucket, or because no partial sum is rounded.
func (w *Window) sumsExact() bool { return w.rows == 1 || w.whole(w.total.Count) }

// Sum is sum_over_time.
func (w *Window) Sum() (v float64, exact bool) {
	t := &w.total
	switch {
	case t.NaNs > 0:
		return math.NaN(), true
	case math.IsInf(t.Sum, 0):
		return t.Sum, w.sumsExact()
	}
	return t.Sum + t.SumC, w.sumsExact()
}

// Avg is avg_over_time. It is never exact where the sum is infinite: upstream then computes a
// running mean.
func (w *Window) Avg() (v float64, exact bool) {
	t := &w.total
	n := float64(t.Count)
	switch {
	case t.NaNs > 0:
		return math.NaN(), true
	case t.Sum-t.Sum != 0:
		return t.Sum, false
	}
	return t.Sum/n + t.SumC/n, w.sumsExact()
}

// Delta is the last sample less the first: delta() before extrapolation.
func (w *Window) Delta() float64 { return w.total.Last - w.total.First }

// Increase is by how much a counter rose, its resets corrected as upstream does: increase() and
// rate() before extrapolation. It is exact if no bucket has more than one reset, or if all that is
// added up are whole numbers.
func (w *Window) Increase() (v float64, exact bool) {
	v = w.Delta()
	for _, reached := range w.steps {
		v += reached
	}
	return v, !w.many || w.whole(w.total.Resets+2)
}
