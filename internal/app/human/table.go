package human

import (
	"strings"
	"unicode/utf8"
)

// Table lays out rows of text; the first row is the header. The first Left columns are aligned
// left, the others right.
type Table struct {
	Left int
	Rows [][]string // all of one length
}

// Row appends a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the rows as lines, with two spaces between columns and none at the ends of lines.
func (t *Table) String() string {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.Rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.Left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
			line.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// widths returns the length of each column's longest cell, in characters.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
