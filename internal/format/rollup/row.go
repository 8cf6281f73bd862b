package rollup

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
)

// Flags of a row.
const (
	// FlagFraction: a sample is not a whole number (or NaN), so sums over several buckets may be
	// rounded differently from upstream's.
	FlagFraction = 1 << iota
	// FlagStart: a sample has a start timestamp. An engine that uses them must read the samples.
	FlagStart

	// In files only: Min is not stored because it is the lesser of First and Last, Max because it
	// is the greater.
	flagMinAtEnd
	flagMaxAtEnd
	// In files only: the integers of First and Max, of Sum and ResetSum, and of Min are differences;
	// Sum contains SumC. See nearLast.
	flagNearEnds
	flagNearSums
	flagTotal
	flagNearMin

	fileFlags = flagMinAtEnd | flagMaxAtEnd | flagNearEnds | flagNearSums | flagTotal | flagNearMin
)

// Row is one bucket of one series. It ignores stale markers, as PromQL does; a bucket of stale
// markers alone has Count 0 and zeros for everything that depends on samples. NaN is a value like
// any other.
type Row struct {
	Bucket int64 // start (exclusive) of the bucket, ms
	Flags  int64

	Count   int64 // samples without stale markers
	FirstT  int64 // ms
	LastT   int64 // ms
	NaNs    int64 // samples that are NaN
	Changes int64 // samples that differ from the one before; NaN equals NaN
	Resets  int64 // samples that are less than the one before, in the bucket

	First, Last float64
	Min, Max    float64 // without NaNs unless all are; of equal ones the earlier, of NaNs the later
	Sum, SumC   float64 // upstream's sum and compensation (kahansum), in order
	ResetSum    float64 // what a counter had reached before each reset, added up in order

	Stale  int64 // stale markers
	StaleT int64 // time of the last one, ms; 0 = none
}

// add adds the samples of a bucket, ascending by time and at least one. st is nil or aligned with
// them. r is empty except for Bucket.
func (r *Row) add(ts []int64, v []float64, st []int64) {
	if slices.ContainsFunc(st, func(t int64) bool { return t != 0 }) {
		r.Flags |= FlagStart
	}
	if r.addFinite(ts, v) {
		return
	}
	*r = Row{Bucket: r.Bucket, Flags: r.Flags & FlagStart}
	for i, x := range v {
		r.addAny(ts[i], x)
	}
}

// addFinite is add for finite numbers whose sum is finite, in one pass. It returns false if the
// numbers are not such; then r must be reset.
func (r *Row) addFinite(ts []int64, v []float64) bool {
	var (
		prev, lo, hi    = v[0], v[0], v[0]
		sum, c          float64
		resetSum        = math.Copysign(0, -1) // -0 + x is x, also for -0
		resets, changes int64
		fraction        bool
	)
	for _, x := range v {
		if x < prev {
			resets++
			resetSum += prev
		}
		if x != prev {
			changes++
		}
		prev = x
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
		if !fraction {
			fraction = x != math.Trunc(x)
		}
		// As kahansum.Inc, which is too large to be inlined. The conversions forbid fused
		// operations.
		t := float64(sum + x)
		if math.Abs(sum) >= math.Abs(x) {
			c += float64(float64(sum-t) + x)
		} else {
			c += float64(float64(x-t) + sum)
		}
		sum = t
	}
	if sum-sum != 0 || resetSum-resetSum != 0 {
		return false
	}
	n := len(v) - 1
	r.Count, r.Changes, r.Resets = int64(n+1), changes, resets
	r.FirstT, r.LastT = ts[0], ts[n]
	r.First, r.Last, r.Min, r.Max = v[0], v[n], lo, hi
	r.Sum, r.SumC = sum, c
	if resets > 0 {
		r.ResetSum = resetSum
	}
	if fraction {
		r.Flags |= FlagFraction
	}
	return true
}

// addAny adds one sample of any value.
func (r *Row) addAny(t int64, x float64) {
	if value.IsStaleNaN(x) {
		r.Stale++
		r.StaleT = t
		return
	}
	if math.IsNaN(x) {
		r.NaNs++
	}
	if r.Count == 0 {
		r.First, r.FirstT, r.Min, r.Max = x, t, x, x
	} else {
		r.compare(x)
	}
	if x != math.Trunc(x) { // also NaN
		r.Flags |= FlagFraction
	}
	r.Sum, r.SumC = kahansum.Inc(x, r.Sum, r.SumC)
	r.Last, r.LastT = x, t
	r.Count++
}

// compare compares a sample with those before it.
func (r *Row) compare(x float64) {
	if x < r.Last {
		if r.Resets++; r.Resets == 1 {
			r.ResetSum = r.Last // 0 + -0 would be 0
		} else {
			r.ResetSum += r.Last
		}
	}
	if differ(x, r.Last) {
		r.Changes++
	}
	if x < r.Min || math.IsNaN(r.Min) {
		r.Min = x
	}
	if x > r.Max || math.IsNaN(r.Max) {
		r.Max = x
	}
}

// differ compares neighbours as changes() does.
func differ(a, b float64) bool { return a != b && !(math.IsNaN(a) && math.IsNaN(b)) }

// elide drops Min and Max where First and Last have them, as for counters without resets. It adds
// SumC to Sum where Sum can be recovered: the total is mostly a decimal as short as the samples are,
// the running sum is that with its rounding errors.
func (r *Row) elide() {
	if r.Count == 0 {
		return
	}
	lo, hi := r.ends()
	if math.Float64bits(r.Min) == math.Float64bits(lo) {
		r.Min, r.Flags = 0, r.Flags|flagMinAtEnd
	}
	if math.Float64bits(r.Max) == math.Float64bits(hi) {
		r.Max, r.Flags = 0, r.Flags|flagMaxAtEnd
	}
	if total := r.Sum + r.SumC; math.Float64bits(total-r.SumC) == math.Float64bits(r.Sum) {
		r.Sum, r.Flags = total, r.Flags|flagTotal
	}
}

// restore undoes elide.
func (r *Row) restore() {
	lo, hi := r.ends()
	if r.Flags&flagMinAtEnd != 0 {
		r.Min = lo
	}
	if r.Flags&flagMaxAtEnd != 0 {
		r.Max = hi
	}
	if r.Flags&flagTotal != 0 {
		r.Sum -= r.SumC
	}
	r.Flags &^= fileFlags
}

// ends returns First and Last in order of size; (First, First) if neither is the lesser.
func (r *Row) ends() (lo, hi float64) {
	switch {
	case r.Last < r.First:
		return r.Last, r.First
	case r.Last > r.First:
		return r.First, r.Last
	}
	return r.First, r.First
}
