// Package vector computes the operators of PromQL over rows: the values of each series at all steps of
// a query. The results have the bits of upstream's.
//
// Values are float64, one per step, and a stale marker is no value. No function changes the values
// of its input, unless it says so, but results may share them. Rows without any value are left out.
package vector

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"
)

// Row is the values of the series with ordinal I. A list of one value may hold at all steps.
type Row struct {
	I uint32
	V []float64
}

// Absent is the value of a step without one.
var Absent = math.Float64frombits(value.StaleNaN)

// Room returns memory of undefined content for n values.
type Room func(n int) []float64

// Blank returns n values that are absent.
func (room Room) Blank(n int) []float64 { return room.Fill(n, Absent) }

// Fill returns n times a value.
func (room Room) Fill(n int, v float64) []float64 {
	out := room(n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Spread returns rows of one value, which holds at all of n steps, as rows of n values.
func (room Room) Spread(rows []Row, n int) []Row {
	if n == 1 {
		return rows
	}
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{r.I, room.Fill(n, r.V[0])}
	}
	return out
}

// At returns the value of a list at a step. A list of one value holds at all steps.
func At(v []float64, step int) float64 {
	if len(v) == 1 {
		return v[0]
	}
	return v[step]
}

// Sort sorts rows by ordinal. Those of one ordinal keep their order.
func Sort(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.I, b.I) })
}

// Union sorts rows, and makes one of those that have an ordinal: its values are those of the first
// row that has one. It changes the rows and their values.
func Union(rows []Row) []Row {
	Sort(rows)
	out := rows[:0]
	for _, r := range rows {
		if len(out) == 0 || out[len(out)-1].I != r.I {
			out = append(out, r)
			continue
		}
		for k, f := range out[len(out)-1].V {
			if value.IsStaleNaN(f) {
				out[len(out)-1].V[k] = r.V[k]
			}
		}
	}
	return out
}
