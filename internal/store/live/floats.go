package live

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// Run is float samples of one series. TS and V are aligned; ST is aligned with them, or empty if no
// sample has a start timestamp.
type Run struct {
	TS []int64 // ms
	V  []float64
	ST []int64 // ms, 0 = unknown
}

// Slice returns the samples [from, to), which share r's memory.
func (r *Run) Slice(from, to int) Run {
	s := Run{TS: r.TS[from:to], V: r.V[from:to]}
	if len(r.ST) > 0 {
		s.ST = r.ST[from:to]
	}
	return s
}

// Append appends samples. Either both runs have start timestamps or neither has.
func (r *Run) Append(s Run) {
	r.TS, r.V, r.ST = append(r.TS, s.TS...), append(r.V, s.V...), append(r.ST, s.ST...)
}

// Reset empties r and keeps its memory.
func (r *Run) Reset() { r.TS, r.V, r.ST = r.TS[:0], r.V[:0], r.ST[:0] }

// Cut removes the samples from position from on, which ascend, that are within gone, and returns
// their number.
func (r *Run) Cut(from int, gone tombstones.Intervals) int {
	if len(gone) == 0 {
		return 0
	}
	tail, n := r.Slice(from, len(r.TS)), len(r.TS)
	r.TS, r.V, r.ST = r.TS[:from], r.V[:from], r.ST[:min(from, len(r.ST))]
	for lo, hi := range Kept(tail.TS, gone) {
		r.Append(tail.Slice(lo, hi)) // overlaps only with what was read already
	}
	return n - len(r.TS)
}

// Floats merges the float samples that several objects have of one series. Stretches of samples are
// added in the order of the objects' ranks, lowest first: Begin, then the samples, ascending, are
// appended to Run. Reset makes it empty again.
type Floats struct {
	Run
	marks []mark
	spare Run // the other buffer of Merge
}

// mark is where a stretch of an object's samples begins in Run.
type mark struct{ at, object int }

// Reset empties f and keeps its memory.
func (f *Floats) Reset() {
	f.Run.Reset()
	f.marks = f.marks[:0]
}

// Begin starts the next stretch: of an object with this position in the order of ranks.
func (f *Floats) Begin(object int) { f.marks = append(f.marks, mark{len(f.TS), object}) }

// Divide divides what was appended of an object from position from on into stretches that ascend.
// Of equal times the later one counts.
func (f *Floats) Divide(from int) {
	object := f.marks[len(f.marks)-1].object
	for i := from + 1; i < len(f.TS); i++ {
		if f.TS[i] <= f.TS[i-1] {
			f.marks = append(f.marks, mark{i, object})
		}
	}
}

// Samples appends all of Run, as Pick takes it. It may only be used before Merge.
func (f *Floats) Samples(dst []Sample) []Sample {
	for i, m := range f.marks {
		for at := m.at; at < f.end(i); at++ {
			dst = append(dst, Sample{T: f.TS[at], Object: m.object, At: at})
		}
	}
	return dst
}

// end returns where the i-th stretch ends.
func (f *Floats) end(i int) int {
	if i+1 < len(f.marks) {
		return f.marks[i+1].at
	}
	return len(f.TS)
}

// Merge leaves in Run the samples that count, ascending. Mostly the stretches follow one another in
// time and nothing is to be done. Otherwise neighbours are merged in pairs until one is left.
func (f *Floats) Merge() {
	marks := f.marks[:0]
	for i, m := range f.marks { // empty ones go
		if m.at < f.end(i) {
			marks = append(marks, m)
		}
	}
	for f.marks = marks; len(f.marks) > 1 && !f.ascending(); {
		f.spare.Reset()
		half := f.marks[:0] // never overtakes i
		for i := 0; i < len(f.marks); i += 2 {
			from, mid, to := f.marks[i].at, f.end(i), f.end(i)
			if i+1 < len(f.marks) {
				to = f.end(i + 1)
			}
			half = append(half, mark{at: len(f.spare.TS)})
			f.spare.merge(f.Slice(from, mid), f.Slice(mid, to))
		}
		f.Run, f.spare = f.spare, f.Run
		f.marks = half
	}
}

// ascending reports whether every stretch ends before the next one begins.
func (f *Floats) ascending() bool {
	return !slices.ContainsFunc(f.marks[1:], func(m mark) bool { return f.TS[m.at-1] >= f.TS[m.at] })
}

// merge appends the samples of a and b in the order of time; of equal times that of b.
func (r *Run) merge(a, b Run) {
	for len(a.TS) > 0 && len(b.TS) > 0 {
		n := before(a.TS, b.TS[0])
		r.Append(a.Slice(0, n))
		if a = a.Slice(n, len(a.TS)); len(a.TS) == 0 {
			break
		}
		if a.TS[0] == b.TS[0] {
			a = a.Slice(1, len(a.TS))
			if len(a.TS) == 0 {
				break
			}
		}
		n = before(b.TS, a.TS[0])
		r.Append(b.Slice(0, n))
		b = b.Slice(n, len(b.TS))
	}
	r.Append(a)
	r.Append(b)
}

// before returns how many of the ascending times are below t. It gallops, because they are mostly
// few or all.
func before(ts []int64, t int64) int {
	if n := len(ts); n == 0 || ts[n-1] < t {
		return n
	}
	hi := 1
	for hi <= len(ts) && ts[hi-1] < t {
		hi *= 2
	}
	lo := hi / 2
	n, _ := slices.BinarySearch(ts[lo:min(hi, len(ts))], t)
	return lo + n
}

// Sample is one sample of a series: a float or a histogram that the caller has at position At of
// its own list.
type Sample struct {
	T      int64 // ms
	Object int   // position in the order of ranks
	Hist   bool
	At     int
}

// Pick leaves in samples those that count, ascending, in the memory of samples. Floats.Merge is the
// same rule for floats alone, and faster.
func Pick(samples []Sample) []Sample {
	slices.SortStableFunc(samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(a.Object, b.Object), cmp.Compare(kind(a), kind(b)))
	})
	kept := samples[:0]
	for i, x := range samples {
		if i+1 == len(samples) || samples[i+1].T != x.T {
			kept = append(kept, x)
		}
	}
	return kept
}

// kind orders the samples that one object has of one time.
func kind(s Sample) int {
	if s.Hist {
		return 1
	}
	return 0
}
