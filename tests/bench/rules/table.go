package rules

import (
	"fmt"
	"slices"

	"github.com/promlake/promlake/tests/bench/table"
)

// measure is a row of the table.
type measure struct {
	name, format string
	of           func(*result) float64
	cost         bool // less is better: the row has a ratio
}

var measures = []measure{
	{"CPU-s", "%.1f", func(r *result) float64 { return r.CPU }, true},
	{"CPU-s per minute", "%.2f", func(r *result) float64 { return r.CPU / r.Seconds * 60 }, true},
	{"CPU-s, busiest minute", "%.2f", func(r *result) float64 { return slices.Max(append([]float64{0}, r.Minutes...)) }, true},
	{"peak RSS, MB", "%.0f", func(r *result) float64 { return float64(r.PeakRSS) / 1e6 }, true},
	{"rule evaluations", "%.0f", func(r *result) float64 { return r.Evaluations }, false},
	{"rule evaluations failed", "%.0f", func(r *result) float64 { return r.Failed }, false},
	{"group evaluations missed", "%.0f", func(r *result) float64 { return r.Missed }, false},
	{"group evaluation, mean ms", "%.1f", func(r *result) float64 { return r.GroupSeconds * 1e3 }, true},
	{"series of results", "%.0f", func(r *result) float64 { return float64(r.Results) }, false},
	{"alerts, pending and firing", "%.0f", func(r *result) float64 { return float64(r.Alerts) }, false},
	{"results computed again", "%.0f", func(r *result) float64 { return float64(r.Recomputed) }, false},
	{"lag of a rule's last sample, median s", "%.2f", func(r *result) float64 { return r.LagMedian }, true},
	{"lag of a rule's last sample, max s", "%.2f", func(r *result) float64 { return r.LagMax }, true},
	{"scrapes", "%.0f", func(r *result) float64 { return float64(r.Scrapes) }, false},
	{"scrapes failed", "%.0f", func(r *result) float64 { return float64(r.ScrapesFailed) }, false},
	{"scrapes missed", "%.0f", func(r *result) float64 { return float64(r.ScrapesMissed) }, false},
	{"samples appended, millions", "%.2f", func(r *result) float64 { return r.Samples / 1e6 }, false},
	{"generator CPU-s", "%.1f", func(r *result) float64 { return r.GeneratorCPU }, false},
}

// rows returns the table: a row for each measure, a column for each server, and the ratio of the
// first to the second.
func rows(results []*result) [][]string {
	head := []string{"measured"}
	for _, r := range results {
		head = append(head, r.Server)
	}
	if len(results) == 2 {
		head = append(head, "ratio")
	}
	out := [][]string{head}
	for _, m := range measures {
		row := []string{m.name}
		for _, r := range results {
			row = append(row, fmt.Sprintf(m.format, m.of(r)))
		}
		if len(results) == 2 {
			ratio := table.Unknown
			if b := m.of(results[1]); m.cost && b != 0 {
				ratio = fmt.Sprintf("%.2f", m.of(results[0])/b)
			}
			row = append(row, ratio)
		}
		out = append(out, row)
	}
	return out
}
