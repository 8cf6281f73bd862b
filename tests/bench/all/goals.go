package all

import (
	"fmt"
	"strings"

	"github.com/promlake/promlake/tests/bench/table"
)

// goal is what is wanted of a row.
type goal struct {
	row    string // its name, or what follows ": " in it
	unit   string // empty: any
	wanted table.Wanted
}

// atMost wants a figure of at most this ratio to the peer's.
func atMost(row, unit string, ratio float64) goal { return goal{row, unit, table.Wanted{Ratio: ratio}} }

// within wants a figure of at most this size.
func within(row, unit string, figure float64) goal {
	return goal{row, unit, table.Wanted{Figure: figure}}
}

func (g goal) of(c table.Comparison) bool {
	return (c.Name == g.row || strings.HasSuffix(c.Name, ": "+g.row)) && (g.unit == "" || c.Unit == g.unit)
}

// memory reports whether a row compares memory: no more than the peer's is wanted.
func memory(c table.Comparison) bool {
	return c.Unit == "MB" && strings.HasSuffix(c.Name, "memory") && c.Peer > 0
}

// set writes into the rows of a step what is wanted of them. It returns an error if a goal has no
// row, so that none is forgotten when a row gets another name.
func (s step) set(rows []table.Comparison) error {
	for i := range rows {
		if memory(rows[i]) {
			rows[i].Wanted.Ratio = 1
		}
	}
	for _, g := range s.goals {
		found := false
		for i := range rows {
			if g.of(rows[i]) {
				rows[i].Wanted, found = g.wanted, true
			}
		}
		if !found {
			return fmt.Errorf("measure %s: there is no row %q (%s)", s.name, g.row, g.unit)
		}
	}
	return nil
}

// chosen returns the steps of which rows are wanted.
func (f *Flags) chosen(steps []step) (out []step) {
	for _, s := range steps {
		wanted := table.Named(f.Rows, s.name)
		for _, g := range s.goals {
			wanted = wanted || table.Named(f.Rows, g.row)
		}
		if wanted {
			out = append(out, s)
		}
	}
	return out
}
