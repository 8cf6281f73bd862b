// Package vector computes the operators of PromQL over rows: the values of each series at all steps of
// a query. It calls the C functions that SQL statements call, so the results have the same bits.
//
// Values are float64, one per step, and a stale marker is no value. No function changes the values
// of its input, unless it says so, but results may share them. Rows without any value are left out.
package vector

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// Row is the values of the series with ordinal I. A list of one value may hold at all steps.
type Row struct {
	I uint32
	V []float64
}

// Room returns memory of undefined content for n values.
type Room func(n int) []float64

// Memory is that of a query: Room is for results, and what else is needed counts against the budget.
type Memory struct {
	Room   Room
	Budget *promsql.Budget
}

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

// Sort sorts rows by ordinal. Those of one ordinal keep their order.
func Sort(rows []Row) {
	byOrdinal := func(a, b Row) int { return cmp.Compare(a.I, b.I) }
	if !slices.IsSortedFunc(rows, byOrdinal) {
		slices.SortStableFunc(rows, byOrdinal)
	}
}

// Renumber replaces the ordinal i of each row by to[i], and drops rows for which that is NoOrdinal.
func Renumber(rows []Row, to []uint32) []Row {
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		if i := to[r.I]; i != NoOrdinal {
			out = append(out, Row{i, r.V})
		}
	}
	return out
}
