package query

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// report is a whole run. Prepared, PeakRSS and the columns of Cells are parallel to Targets, the
// rows of Cells to Questions.
type report struct {
	Scale     scale      `json:"scale"`
	Targets   []string   `json:"targets"`
	Prepared  []prepared `json:"prepared"`
	PeakRSS   []uint64   `json:"peak_rss_bytes,omitempty"` // over all warm rounds
	RSS       []uint64   `json:"rss_bytes,omitempty"`      // at the end, of the set live
	Questions []Question `json:"questions"`
	Cells     cells      `json:"cells"`
	Trips     []trip     `json:"over_a_bucket,omitempty"` // parallel to Questions
	Mix       []mix      `json:"mix,omitempty"`           // parallel to Targets
}

// measure is a table: the number of each cell, if it has one.
type measure struct {
	name, format string
	of           func(*cell) (float64, bool)
	ratios       bool // to VictoriaMetrics
}

func measures() []measure {
	warm := func(f func([]float64) float64) func(*cell) (float64, bool) {
		return func(c *cell) (float64, bool) {
			if len(c.Warm) == 0 {
				return 0, false
			}
			return 1000 * f(c.Warm), true
		}
	}
	return []measure{
		{"warm, ms, median", "%.1f", warm(func(v []float64) float64 { m, _ := table.Median(v); return m }), true},
		{"warm, ms, best", "%.1f", warm(slices.Min[[]float64]), true},
		{"cold, ms", "%.1f", func(c *cell) (float64, bool) { return 1000 * c.Cold, c.Cold > 0 }, true},
		{"warm, CPU ms", "%.1f", func(c *cell) (float64, bool) { return 1000 * c.CPU, len(c.Warm) > 0 }, true},
		{"cold, peak RSS, MB", "%.0f", func(c *cell) (float64, bool) { return float64(c.ColdRSS) / 1e6, c.ColdRSS > 0 }, false},
	}
}

// publish prints the report and returns errFailed if a question failed or has different answers.
func (r *report) publish(w io.Writer, asJSON bool) error {
	if asJSON {
		return errors.Join(table.WriteJSON(w, r), r.failures())
	}
	return errors.Join(r.writeTables(w), r.failures())
}

// failures returns errFailed if a question failed or has different answers, and prints these.
func (r *report) failures() (err error) {
	for i := range r.Cells {
		for k, c := range r.Cells[i] {
			for _, what := range []string{c.Error, c.Apart} {
				if what != "" {
					note("%s: %s: %s", r.Targets[k], r.Questions[i].name(), what)
					err = errors.Join(err, errFailed)
				}
			}
		}
	}
	return err
}

// writeTables prints a Markdown table for each measure that has values: a row for each question and
// a column for each target and ratio.
func (r *report) writeTables(w io.Writer) error {
	var tables [][][]string
	for _, m := range measures() {
		if rows := r.rows(m); rows != nil {
			tables = append(tables, rows)
		}
	}
	rows := [][]string{{"of the server", "samples", "disk, MB", "peak RSS when warm, MB", "RSS at the end, MB"}}
	for k, name := range r.Targets {
		row := []string{name, fmt.Sprint(r.Prepared[k].Life.Samples), table.Unknown}
		if disk := r.Prepared[k].Disk; disk > 0 {
			row[2] = fmt.Sprintf("%.1f", float64(disk)/1e6)
		}
		for _, rss := range [][]uint64{r.PeakRSS, r.RSS} {
			if rss == nil {
				row = append(row, table.Unknown)
			} else {
				row = append(row, fmt.Sprintf("%.0f", float64(rss[k])/1e6))
			}
		}
		rows = append(rows, row)
	}
	tables = append(tables, rows)
	if r.Trips != nil {
		tables = append(tables, r.tripRows())
	}
	if r.Mix != nil {
		rows := [][]string{{"dashboard mix, 8 clients", "queries/s", "CPU ms per query", "median, ms", "p99, ms"}}
		for k, m := range r.Mix {
			rows = append(rows, []string{r.Targets[k], fmt.Sprintf("%.0f", m.perSecond()), fmt.Sprintf("%.2f", m.CPU), fmt.Sprintf("%.1f", m.Median), fmt.Sprintf("%.1f", m.P99)})
		}
		tables = append(tables, rows)
	}
	return table.Write(w, tables...)
}

// rows is the table of a measure, nil if no cell has it.
func (r *report) rows(m measure) [][]string {
	rows := [][]string{append([]string{m.name}, r.Targets...)}
	peer := slices.Index(r.Targets, server.VictoriaMetrics)
	own := r.compared(m, peer)
	for _, k := range own {
		rows[0] = append(rows[0], r.Targets[k]+"/"+server.VictoriaMetrics)
	}
	any := false
	for i, q := range r.Questions {
		row := []string{q.name()}
		for k := range r.Targets {
			if v, ok := m.of(&r.Cells[i][k]); ok && r.Cells[i][k].Error == "" {
				any = true
				row = append(row, fmt.Sprintf(m.format, v))
			} else {
				row = append(row, table.Unknown)
			}
		}
		for _, k := range own {
			row = append(row, r.ratio(m, i, k, peer))
		}
		rows = append(rows, row)
	}
	if !any {
		return nil
	}
	return rows
}

// compared returns the targets that a measure compares with VictoriaMetrics.
func (r *report) compared(m measure, peer int) (own []int) {
	for k := range r.Targets {
		if m.ratios && peer >= 0 && k != peer {
			own = append(own, k)
		}
	}
	return own
}

func (r *report) ratio(m measure, question, own, peer int) string {
	a, b := &r.Cells[question][own], &r.Cells[question][peer]
	v, ok := m.of(a)
	w, peerOK := m.of(b)
	if !ok || !peerOK || w == 0 || a.Error != "" || b.Error != "" {
		return table.Unknown
	}
	return fmt.Sprintf("%.2f", v/w)
}
