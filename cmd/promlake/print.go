package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/prometheus/common/model"
)

// printReport writes a report for scripts, as indented JSON, or for readers.
func printReport(w io.Writer, asJSON bool, report any, text func() string) error {
	if !asJSON {
		_, err := io.WriteString(w, text())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func printTable(w io.Writer, v model.Value) error {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	switch v := v.(type) {
	case model.Vector:
		t.row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			var value any = s.Value
			if s.Histogram != nil {
				value = s.Histogram
			}
			t.row(s.Metric, clock(s.Timestamp), value)
		}
	case model.Matrix:
		t.row("SERIES", "TIME", "VALUE")
		for _, s := range v {
			for _, p := range s.Values {
				t.row(s.Metric, clock(p.Timestamp), p.Value)
			}
			for _, p := range s.Histograms {
				t.row(s.Metric, clock(p.Timestamp), p.Histogram)
			}
		}
	case *model.Scalar:
		t.row("TIME", "VALUE")
		t.row(clock(v.Timestamp), v.Value)
	case *model.String:
		t.row("TIME", "VALUE")
		t.row(clock(v.Timestamp), v.Value)
	default:
		return fmt.Errorf("no table for an answer of type %s", v.Type())
	}
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// table writes rows until the first error, which it keeps.
type table struct {
	w   *tabwriter.Writer
	err error
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		end := "\t"
		if i == len(cells)-1 {
			end = "\n"
		}
		if t.err == nil {
			_, t.err = fmt.Fprint(t.w, c, end)
		}
	}
}

func clock(t model.Time) string { return t.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00") }
