package table

import (
	"fmt"
	"slices"
)

// Comparison is a figure of Promlake beside that of a peer. Less is better.
type Comparison struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Promlake float64 `json:"promlake"`
	Peer     float64 `json:"peer,omitempty"` // 0: the peer has no such figure
	Wanted   Wanted  `json:"wanted,omitzero"`
}

// Wanted is what a figure should be at most. Both are 0 if nothing is wanted.
type Wanted struct {
	Ratio  float64 `json:"ratio,omitempty"` // to the peer's figure
	Figure float64 `json:"figure,omitempty"`
}

// Ratio is Promlake's figure divided by the peer's, and whether there is one.
func (c Comparison) Ratio() (ratio float64, known bool) {
	if c.Peer == 0 {
		return 0, false
	}
	return c.Promlake / c.Peer, true
}

// Goal is what is wanted as a ratio to the peer's figure, and whether that is known.
func (c Comparison) Goal() (ratio float64, known bool) {
	switch {
	case c.Wanted.Figure > 0 && c.Peer > 0:
		return c.Wanted.Figure / c.Peer, true
	case c.Wanted.Ratio > 0:
		return c.Wanted.Ratio, true
	}
	return 0, false
}

// Missed reports whether the figure is known to be more than what is wanted.
func (c Comparison) Missed() bool {
	r, known := c.Ratio()
	return c.Wanted.Figure > 0 && c.Promlake > c.Wanted.Figure || c.Wanted.Ratio > 0 && known && r > c.Wanted.Ratio
}

// wanted is the text of what is wanted.
func (c Comparison) wanted() (text string) {
	switch {
	case c.Wanted.Figure > 0:
		text = fmt.Sprintf("≤ %s %s", number(c.Wanted.Figure), c.Unit)
	case c.Wanted.Ratio > 0:
		text = fmt.Sprintf("ratio ≤ %s", number(c.Wanted.Ratio))
	}
	if c.Missed() {
		text += ", missed"
	}
	return text
}

// Comparisons returns the table of comparisons: a row for each. What is wanted has a column if it
// is known of any.
func Comparisons(all []Comparison) [][]string {
	goals := slices.ContainsFunc(all, func(c Comparison) bool { return c.Wanted != Wanted{} })
	rows := [][]string{{"measured", "unit", "promlake", "victoria-metrics", "ratio"}}
	if goals {
		rows[0] = append(rows[0], "wanted")
	}
	for _, c := range all {
		peer, ratio := Unknown, Unknown
		if r, known := c.Ratio(); known {
			peer, ratio = number(c.Peer), fmt.Sprintf("%.2f", r)
		}
		row := []string{c.Name, c.Unit, number(c.Promlake), peer, ratio}
		if goals {
			row = append(row, c.wanted())
		}
		rows = append(rows, row)
	}
	return rows
}

// number has three significant digits.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
