package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck"
)

// leaf is an aggregate over the samples of each series of a selector.
type leaf struct {
	table, function string
	parameters      string // of the function, as SQL behind the text of the windows
	window          int64  // ms
	keepsName       bool
}

func (t *translation) selector(s *parser.VectorSelector, at place, ordered bool, l leaf) (relation, string) {
	offset, reason := offsetOf(at, s.Timestamp, s.OriginalOffset.Milliseconds())
	switch {
	case reason != "":
		return relation{}, reason
	case s.Anchored || s.Smoothed:
		return relation{}, "anchored and smoothed selectors"
	}
	name, conditions := "", []string(nil)
	for _, m := range s.LabelMatchers {
		switch c := condition(m); {
		case m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual && m.Value != "":
			name, conditions = m.Value, slices.Insert(conditions, 0, c)
		case c != "":
			conditions = append(conditions, c)
		}
	}
	r := relation{named: l.keepsName, many: name == "", sides: 1}
	if r.many && !r.named {
		return relation{}, "a function drops the names of several metrics"
	}
	conditions = append(conditions, "ts > "+moment(at.start-offset-l.window), "ts <= "+moment(at.end()-offset))
	grid, window := t.grid(at), ""
	if offset != 0 {
		window = ", " + interval(offset)
	}
	key := when(r.named, "metric, ") + "labels"
	body := fmt.Sprintf("SELECT %s, %s(ts, value, prom_window(%s, %s%s)%s) AS v%s FROM %s, %s WHERE %s GROUP BY %[1]s",
		key, l.function, grid.column, interval(l.window), window, l.parameters,
		when(ordered, fmt.Sprintf(", prom_order(%s) AS i", key)), l.table, grid.table, strings.Join(conditions, " AND "))
	r.name = t.add(body)
	return r, ""
}

// offsetOf returns the time (ms) from the end of a window to its step.
func offsetOf(at place, timestamp *int64, original int64) (int64, string) {
	switch {
	case timestamp == nil:
		return original, ""
	case at.n > 1 || at.inner:
		return 0, "upstream evaluates it at another time than that of its @"
	}
	return original + at.start - *timestamp, ""
}

// condition is a matcher as SQL; "": it holds for all series. PromQL takes a label that is not
// there for an empty text, which SQL has as NULL.
func condition(m *labels.Matcher) string {
	column := "labels[" + duck.Literal(m.Name) + "]"
	if m.Name == model.MetricNameLabel {
		column = "metric"
	}
	value := duck.Literal(m.Value)
	switch m.Type {
	case labels.MatchEqual:
		if m.Value == "" {
			return column + " IS NULL"
		}
		return column + " = " + value
	case labels.MatchNotEqual:
		if m.Value == "" {
			return column + " IS NOT NULL"
		}
		return column + " IS DISTINCT FROM " + value
	}
	test := fmt.Sprintf("regexp_full_match(%s, %s, 's')", column, value)
	if set := m.SetMatches(); len(set) > 0 && m.Type == labels.MatchRegexp && !m.Matches("") {
		list := texts(set)
		return column + " IN (" + list[1:len(list)-1] + ")"
	}
	empty := m.Matches("")
	switch {
	case m.Value == ".*":
		return when(m.Type == labels.MatchNotRegexp, "false")
	case m.Value == ".+":
		return column + " IS " + when(!empty, "NOT ") + "NULL"
	case m.Type == labels.MatchNotRegexp:
		test = "NOT " + test
	}
	if empty {
		return "(" + test + " OR " + column + " IS NULL)"
	}
	return test
}
