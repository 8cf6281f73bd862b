package vector

import (
	"math"
	"sort"

	"github.com/prometheus/prometheus/model/value"
)

func deviationOf(out []float64, members []Row, room Room) {
	varianceOf(out, members, room)
	for k, f := range out {
		if !value.IsStaleNaN(f) {
			out[k] = math.Sqrt(f)
		}
	}
}

func varianceOf(out []float64, members []Row, _ Room) {
	for k := range out {
		var mean, squares, n float64
		for _, r := range members {
			f := r.V[k]
			if value.IsStaleNaN(f) {
				continue
			}
			if n++; n == 1 {
				mean, squares = f, f-f // 0, NaN for infinities and NaN
				continue
			}
			delta := f - mean
			mean += delta / n
			squares += delta * (f - mean)
		}
		if n > 0 {
			out[k] = squares / n
		}
	}
}

// quantileOf writes the quantile of the members' values.
// Source: quantile in upstream's promql/quantile.go.
func quantileOf(phi float64, out []float64, members []Row) {
	values := make(ascending, 0, len(members))
	for k := range out {
		values = values[:0]
		for _, r := range members {
			if f := r.V[k]; !value.IsStaleNaN(f) {
				values = append(values, f)
			}
		}
		if len(values) > 0 {
			out[k] = values.quantile(phi)
		}
	}
}

// ascending sorts as upstream's vectorByValueHeap, which decides the order of zeros of both signs.
type ascending []float64

// Len implements sort.Interface.
func (a ascending) Len() int { return len(a) }

// Less implements sort.Interface.
func (a ascending) Less(i, j int) bool { return math.IsNaN(a[i]) || a[i] < a[j] }

// Swap implements sort.Interface.
func (a ascending) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a ascending) quantile(phi float64) float64 {
	switch {
	case math.IsNaN(phi):
		return math.NaN()
	case phi < 0:
		return math.Inf(-1)
	case phi > 1:
		return math.Inf(1)
	}
	sort.Sort(a)
	n := float64(len(a))
	rank := phi * (n - 1)
	low := math.Max(0, math.Floor(rank))
	high := math.Min(n-1, low+1)
	weight := rank - math.Floor(rank)
	return a[int(low)]*(1-weight) + a[int(high)]*weight
}
