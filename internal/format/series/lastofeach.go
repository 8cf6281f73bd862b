package series

import (
	"slices"
	"strings"
)

// SortLabels sorts labels by name. Those of one name keep their order.
func SortLabels(lset []Label) {
	slices.SortStableFunc(lset, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
}

// LastOfEach sorts labels by name and keeps the last one of each name. It uses lset's memory.
func LastOfEach(lset []Label) []Label {
	SortLabels(lset)
	out := lset[:0]
	for i, l := range lset {
		if i+1 == len(lset) || lset[i+1].Name != l.Name {
			out = append(out, l)
		}
	}
	return out
}
