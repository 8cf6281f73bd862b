// Package human writes figures for people.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bytes writes a size with the largest unit in which it is at least 1: 999 B, 1.5 KiB, 3.0 MiB.
func Bytes(n int64) string {
	return scaled(float64(n), 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
}

// Count writes a number in steps of a thousand: 999, 1.5k, 3.0M.
func Count(n int64) string { return scaled(float64(n), 1000, "", "k", "M", "G", "T", "P", "E") }

// scaled divides v by base as long as that leaves a number that does not read as less than 1.
func scaled(v, base float64, units ...string) string {
	i, sign := 0, 1.0
	if v < 0 {
		v, sign = -v, -1
	}
	for i < len(units)-1 && math.Round(v*10)/10 >= base {
		v /= base
		i++
	}
	if i == 0 {
		return strconv.FormatFloat(sign*v, 'f', 0, 64) + units[0]
	}
	return fmt.Sprintf("%.1f%s", sign*v, units[i])
}

// Ratio writes a/b with three decimals, or – where there is no b.
func Ratio(a, b int64) string {
	if b == 0 {
		return "–"
	}
	return strconv.FormatFloat(float64(a)/float64(b), 'f', 3, 64)
}

// PerSecond writes a count per second, or – where no time has passed.
func PerSecond(n int64, d time.Duration) string {
	if d <= 0 {
		return "–"
	}
	return Count(int64(float64(n)/d.Seconds())) + "/s"
}

// Time writes a point in time (ms since the Unix epoch) in UTC.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// Table lays out rows of text; the first row is the header. The first Left columns are aligned
// left, the others right.
type Table struct {
	Left int
	Rows [][]string // all of one length
}

// Row appends a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Some appends a row with a count, unless it is 0.
func (t *Table) Some(what string, n int64) {
	if n > 0 {
		t.Row(what, Count(n))
	}
}

// String returns the rows as lines, with two spaces between columns and none at the ends of lines.
func (t *Table) String() string {
	var widths []int // of the longest cell of each column, in characters
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
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
