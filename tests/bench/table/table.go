// Package table prints results: as Markdown tables, or as JSON.
package table

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unknown is the text of a cell without a value.
const Unknown = "–"

// WriteJSON prints results as indented JSON.
func WriteJSON(w io.Writer, results any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	if err := enc.Encode(results); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Write prints tables with an empty line between two. The rows of a table have equal length; the
// first is the header. All columns but the first are aligned to the right.
func Write(w io.Writer, tables ...[][]string) error {
	var b strings.Builder
	for i, rows := range tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		write(&b, rows)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func write(b *strings.Builder, rows [][]string) {
	rows = escaped(rows)
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 3)
		}
	}
	rule := []string{strings.Repeat("-", width[0])}
	for _, n := range width[1:] {
		rule = append(rule, strings.Repeat("-", n-1)+":")
	}
	for _, r := range slices.Concat(rows[:1], [][]string{rule}, rows[1:]) {
		fmt.Fprintf(b, "| %-*s |", width[0], r[0])
		for i, cell := range r[1:] {
			fmt.Fprintf(b, " %*s |", width[i+1], cell)
		}
		b.WriteByte('\n')
	}
}

// escaped returns the rows with the vertical bars of cells as text.
func escaped(rows [][]string) (out [][]string) {
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, cell := range r {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		out = append(out, cells)
	}
	return out
}

// Count is a whole number with a comma between thousands.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Named reports whether a name contains one of the texts, in upper or lower case, or there are
// none.
func Named(texts []string, name string) bool {
	return len(texts) == 0 || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(text)) })
}

// Median returns the median of the values (the mean of the two middle ones), and whether there are
// any.
func Median(values []float64) (median float64, known bool) {
	if len(values) == 0 {
		return 0, false
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}
