// Package csvlines reads samples from CSV. The format of a request's lines is VictoriaMetrics'
// (https://docs.victoriametrics.com/victoriametrics/#how-to-import-csv-data):
//
//	2:label:job,4:metric:demo,5:time:unix_s
package csvlines

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/prom/timeparam"
)

// Format tells what the columns of a request's lines are.
type Format struct {
	metrics []column
	labels  []column
	time    int // position; -1: no column has a time
	clock   timeparam.Clock
	columns int // that a line must have at least
}

// column is a column with a name.
type column struct {
	at   int // position, from 0
	name string
}

// ParseFormat parses a list of <column>:<type>:<context>, where columns count from 1, and the type
// is metric with a name, label with a name, or time with a clock.
func ParseFormat(text string) (Format, error) {
	f := Format{time: -1}
	used := map[int]bool{}
	for _, part := range split(text) {
		position, rest, _ := strings.Cut(part, ":")
		kind, context, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(position)
		if err != nil || n < 1 || n > maxColumns || !ok || context == "" {
			return f, fmt.Errorf("%q has not the form <column from 1 to %d>:<metric, label or time>:<name or format of the time>", part, maxColumns)
		}
		if used[n] {
			return f, fmt.Errorf("column %d is named twice", n)
		}
		used[n], f.columns = true, max(f.columns, n)
		switch c := (column{n - 1, context}); {
		case kind == "metric":
			f.metrics = append(f.metrics, c)
		case kind == "label":
			f.labels = append(f.labels, c)
		case kind != "time":
			return f, fmt.Errorf("%q is not one of metric, label, time", kind)
		case f.time >= 0:
			return f, errors.New("two columns are a time, want one")
		default:
			f.time = c.at
			if f.clock, err = timeparam.ParseClock(context); err != nil {
				return f, err
			}
		}
	}
	if len(f.metrics) == 0 {
		return f, errors.New("no column is a metric, want at least one as in 1:label:city,2:metric:temperature")
	}
	return f, nil
}

// maxColumns is the highest number of a column.
const maxColumns = 10_000

// split divides at commas that begin a column: a custom format of times may have commas too.
func split(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		digits := strings.TrimLeft(part, "0123456789")
		if begins := len(digits) < len(part) && strings.HasPrefix(digits, ":"); begins || len(parts) == 0 {
			parts = append(parts, part)
		} else {
			parts[len(parts)-1] += "," + part
		}
	}
	return parts
}
