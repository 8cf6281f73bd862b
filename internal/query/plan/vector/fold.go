package vector

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
)

// Folding combines aggregates of parts into those of the whole.
type Folding struct {
	op     string
	groups map[uint32]*fold
}

// fold is the aggregate of a group so far, with the compensation of its sum.
type fold struct{ v, c []float64 }

// NewFolding returns an empty Folding for sum, count, min, max or group.
func NewFolding(op string) *Folding { return &Folding{op: op, groups: map[uint32]*fold{}} }

// Add adds the values of a part to a group. They belong to the folding from then on.
func (a *Folding) Add(group uint32, v []float64) {
	f, ok := a.groups[group]
	if !ok {
		a.groups[group] = &fold{v, make([]float64, len(v))}
		return
	}
	if n := len(v); len(f.v) == 1 && n > 1 {
		f.v, f.c = slices.Repeat(f.v, n), slices.Repeat(f.c, n)
	}
	for j := range f.v {
		switch x := At(v, j); {
		case value.IsStaleNaN(x):
		case value.IsStaleNaN(f.v[j]):
			f.v[j] = x
		default:
			f.v[j], f.c[j] = combine(a.op, f.v[j], x, f.c[j])
		}
	}
}

// combine aggregates two values as upstream's aggregation does. c is the compensation of a sum.
func combine(op string, a, b, c float64) (float64, float64) {
	switch op {
	case "sum", "count":
		return kahansum.Inc(b, a, c)
	case "min":
		if b < a || math.IsNaN(a) {
			return b, 0
		}
	case "max":
		if b > a || math.IsNaN(a) {
			return b, 0
		}
	}
	return a, 0
}

// Rows returns the aggregates of all groups, ascending by group.
func (a *Folding) Rows() []Row {
	out := make([]Row, 0, len(a.groups))
	for i, f := range a.groups {
		for j, c := range f.c {
			if !value.IsStaleNaN(f.v[j]) {
				f.v[j] += c
			}
		}
		out = append(out, Row{i, f.v})
	}
	Sort(out)
	return out
}
