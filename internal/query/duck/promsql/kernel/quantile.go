package kernel

/*
#include "range.h"

double promSortedQuantile(double q, double *v, uint32_t n);
*/
import "C"

import (
	"math"
	"slices"
	"sort"
	"unsafe"
)

func init() { C.prom_sorted_quantile = (*[0]byte)(C.promSortedQuantile) }

// promSortedQuantile is what prom_sorted_quantile points to. The values stay as they are.
//
//export promSortedQuantile
func promSortedQuantile(q C.double, v *C.double, n C.uint32_t) C.double {
	values := byValue(slices.Clone(unsafe.Slice((*float64)(v), int(n))))
	sort.Sort(values)
	rank := float64(q) * float64(n-1)
	lower := math.Max(0, math.Floor(rank))
	upper := math.Min(float64(n-1), lower+1)
	weight := rank - math.Floor(rank)
	return C.double(values[int(lower)]*(1-weight) + values[int(upper)]*weight)
}

type byValue []float64

func (s byValue) Len() int           { return len(s) }
func (s byValue) Less(i, j int) bool { return math.IsNaN(s[i]) || s[i] < s[j] }
func (s byValue) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
