package growth

import (
	"fmt"

	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// result is the measurement of a server at one size.
type result struct {
	Server  string      `json:"server"`
	Series  int         `json:"series"` // at a time; churn adds more
	Load    load.Report `json:"load"`
	Queries asked       `json:"queries"`
}

func (r result) String() string {
	return fmt.Sprintf("%s, %d series: %.3f CPU-s per million samples, peak RSS %.0f MB, %.2f CPU ms per first query, %.2f per repeated one",
		r.Server, r.Series, r.Load.Server.CPUPerMillion, float64(r.Load.Server.PeakRSSBytes)/1e6, r.Queries.First.CPU, r.Queries.Again.CPU)
}

// measure is a group of columns: a value, how much of the smallest size's efficiency is left (1: it
// costs as much), and the ratio to VictoriaMetrics.
type measure struct {
	name, unit, format string
	of                 func(*result) float64
}

var measures = []measure{
	{"samples", "CPU-s per million samples", "%.3f", func(r *result) float64 { return r.Load.Server.CPUPerMillion }},
	{"peak memory", "kB per series", "%.2f", func(r *result) float64 { return float64(r.Load.Server.PeakRSSBytes) / float64(r.Series) / 1e3 }},
	{"first queries", "CPU ms per query", "%.2f", func(r *result) float64 { return r.Queries.First.CPU }},
	{"repeated queries", "CPU ms per query", "%.2f", func(r *result) float64 { return r.Queries.Again.CPU }},
}

// rows returns the table: a row for each size and server.
func rows(results []result) [][]string {
	head := []string{"series", "server"}
	for _, m := range measures {
		head = append(head, m.name+", "+m.unit, "left", "ratio")
	}
	out := [][]string{head}
	for i := range results {
		r := &results[i]
		first, peer := find(results, r.Server, 0), find(results, server.VictoriaMetrics, r.Series)
		if r == peer {
			peer = nil
		}
		row := []string{fmt.Sprint(r.Series), r.Server}
		for _, m := range measures {
			row = append(row, fmt.Sprintf(m.format, m.of(r)), quotient(first, r, m.of), quotient(r, peer, m.of))
		}
		out = append(out, row)
	}
	return out
}

// comparisons are the same figures for each size, and how much more they are than at the smallest.
func comparisons(results []result) (out []table.Comparison) {
	for i := range results {
		r := &results[i]
		if r.Server != server.Promlake {
			continue
		}
		peer, first, peerFirst := find(results, server.VictoriaMetrics, r.Series), find(results, server.Promlake, 0), find(results, server.VictoriaMetrics, 0)
		for _, m := range measures {
			c := table.Comparison{Name: fmt.Sprintf("%s series: %s", table.Count(int64(r.Series)), m.name), Unit: m.unit, Promlake: m.of(r)}
			if peer != nil {
				c.Peer = m.of(peer)
			}
			out = append(out, c)
			if r == first {
				continue
			}
			c = table.Comparison{Name: c.Name, Unit: fmt.Sprintf("times that of %s series", table.Count(int64(first.Series))), Promlake: times(r, first, m.of)}
			if peer != nil {
				c.Peer = times(peer, peerFirst, m.of)
			}
			out = append(out, c)
		}
	}
	return out
}

// times is a's value divided by b's; 0 if b's is too little to be measured.
func times(a, b *result, of func(*result) float64) float64 {
	if of(b) == 0 {
		return 0
	}
	return of(a) / of(b)
}

// find returns a server's result at a size, 0 for its first one; nil if there is none.
func find(results []result, name string, series int) *result {
	for i := range results {
		if results[i].Server == name && (series == 0 || results[i].Series == series) {
			return &results[i]
		}
	}
	return nil
}

// quotient is a's value divided by b's.
func quotient(a, b *result, of func(*result) float64) string {
	if a == nil || b == nil || of(b) == 0 {
		return table.Unknown
	}
	return fmt.Sprintf("%.2f", of(a)/of(b))
}
