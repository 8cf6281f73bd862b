package live

import (
	"cmp"
	"slices"
)

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
