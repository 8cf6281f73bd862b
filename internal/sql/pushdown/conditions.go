package pushdown

import (
	"math"

	"github.com/grafana/regexp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Meaning is what a column of a table holds.
type Meaning struct {
	Kind  Kind
	Label string // of a Label
}

// Kind is the kind of a column.
type Kind int

// The kinds of columns that conditions are understood on.
const (
	Other  Kind = iota
	Time        // the time of a sample, TIMESTAMP WITH TIME ZONE
	Label       // the value of one label, NULL if a series does not have it
	Labels      // a MAP of labels, without __name__
)

// Constraint returns what the scan's conditions admit. meaning is that of a column, by its name.
func (s *Scan) Constraint(meaning func(column string) Meaning) Constraint {
	r := reader{s, meaning}
	out := All()
	for _, c := range s.conds {
		out = out.And(r.condition(c))
	}
	return out
}

// reader reads the conditions of a scan.
type reader struct {
	scan    *Scan
	meaning func(column string) Meaning
}

// condition returns what a condition admits: everything if it is not understood.
func (r reader) condition(n node) Constraint {
	switch n.Text("expression_class") {
	case "BOUND_COMPARISON":
		if c, ok := r.compare(n.Text("type"), n.Node("left"), n.Node("right")); ok {
			return c
		}
		if c, ok := r.compare(flipped[n.Text("type")], n.Node("right"), n.Node("left")); ok {
			return c
		}
	case "BOUND_BETWEEN":
		low, high := "COMPARE_GREATERTHAN", "COMPARE_LESSTHAN"
		if n.Flag("lower_inclusive") {
			low += "OREQUALTO"
		}
		if n.Flag("upper_inclusive") {
			high += "OREQUALTO"
		}
		out := All()
		if c, ok := r.compare(low, n.Node("input"), n.Node("lower")); ok {
			out = out.And(c)
		}
		if c, ok := r.compare(high, n.Node("input"), n.Node("upper")); ok {
			out = out.And(c)
		}
		return out
	case "BOUND_CONJUNCTION":
		children := n.Nodes("children")
		if len(children) == 0 {
			return All()
		}
		if n.Text("type") == "CONJUNCTION_AND" {
			out := All()
			for _, c := range children {
				out = out.And(r.condition(c))
			}
			return out
		}
		if label, values, ok := r.equals(children); ok {
			return oneOf(label, values)
		}
		out := r.condition(children[0])
		for _, c := range children[1:] {
			out = out.Or(r.condition(c))
		}
		return out
	case "BOUND_OPERATOR":
		children := n.Nodes("children")
		if len(children) == 0 {
			return All()
		}
		label, ok := r.label(children[0])
		if !ok {
			return All()
		}
		switch n.Text("type") {
		case "OPERATOR_IS_NULL":
			return matching(labels.MustNewMatcher(labels.MatchEqual, label, ""))
		case "OPERATOR_IS_NOT_NULL":
			return matching(labels.MustNewMatcher(labels.MatchNotEqual, label, ""))
		case "COMPARE_IN":
			var values []string
			for _, c := range children[1:] {
				v, ok := text(c)
				if !ok {
					return All()
				}
				values = append(values, v)
			}
			if len(values) > 0 {
				return oneOf(label, values)
			}
		}
		return All()
	case "BOUND_FUNCTION":
		return r.function(n)
	}
	return All()
}

// flipped are comparisons with their sides exchanged.
var flipped = map[string]string{
	"COMPARE_EQUAL": "COMPARE_EQUAL", "COMPARE_NOTEQUAL": "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM": "COMPARE_DISTINCT_FROM",
	"COMPARE_LESSTHAN": "COMPARE_GREATERTHAN", "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
	"COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO", "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}

// compare reads a comparison of a column with a constant.
func (r reader) compare(op string, column, constant node) (Constraint, bool) {
	if us, ok := micros(constant); ok && r.isTime(column) {
		c := All()
		floor := us / 1000
		if us%1000 < 0 {
			floor--
		}
		whole := us%1000 == 0
		switch op {
		case "COMPARE_EQUAL":
			if c.MinT, c.MaxT = floor, floor; !whole {
				c.MinT, c.MaxT = math.MaxInt64, math.MinInt64
			}
		case "COMPARE_GREATERTHAN":
			c.MinT = floor + 1
		case "COMPARE_GREATERTHANOREQUALTO":
			if c.MinT = floor; !whole {
				c.MinT++
			}
		case "COMPARE_LESSTHAN":
			if c.MaxT = floor; whole {
				c.MaxT--
			}
		case "COMPARE_LESSTHANOREQUALTO":
			c.MaxT = floor
		}
		return c, true
	}
	label, ok := r.label(column)
	if !ok {
		return All(), false
	}
	v, ok := text(constant)
	if !ok {
		return All(), false
	}
	switch op {
	case "COMPARE_EQUAL":
		return oneOf(label, []string{v}), true
	case "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM":
		return matching(labels.MustNewMatcher(labels.MatchNotEqual, label, v)), true
	}
	return All(), true
}

// equals reads a disjunction of comparisons of one label with values.
func (r reader) equals(children []node) (label string, values []string, ok bool) {
	for _, c := range children {
		if c.Text("expression_class") != "BOUND_COMPARISON" || c.Text("type") != "COMPARE_EQUAL" {
			return "", nil, false
		}
		l, isLabel := r.label(c.Node("left"))
		v, isText := text(c.Node("right"))
		if !isLabel || !isText || label != "" && l != label {
			return "", nil, false
		}
		label, values = l, append(values, v)
	}
	return label, values, true
}

// function reads conditions on the bytes of a label: LIKE becomes one of them.
func (r reader) function(n node) Constraint {
	children := n.Nodes("children")
	if len(children) < 2 {
		return All()
	}
	label, isLabel := r.label(children[0])
	v, isText := text(children[1])
	if !isLabel || !isText {
		return All()
	}
	quoted := regexp.QuoteMeta(v)
	switch n.Text("name") {
	case "prefix", "starts_with", "^@":
		return pattern(label, "(?s:"+quoted+".*)")
	case "suffix", "ends_with":
		return pattern(label, "(?s:.*"+quoted+")")
	case "contains":
		return pattern(label, "(?s:.*"+quoted+".*)")
	case "regexp_full_match": // whose options, of PromQL's matchers, add no text that it matches
		if len(children) == 2 || constant(children[2], "VARCHAR") == "s" {
			return pattern(label, "(?s:"+v+")")
		}
	}
	return All()
}

// column returns the meaning of a reference to a column.
func (r reader) column(n node) Meaning {
	i, ok := integer(n["index"])
	if !ok || n.Text("expression_class") != "BOUND_REF" || i < 0 || i >= int64(len(r.scan.outputs)) || r.scan.outputs[i] < 0 {
		return Meaning{}
	}
	return r.meaning(r.scan.columns[r.scan.outputs[i]])
}

func (r reader) isTime(n node) bool { return r.column(n).Kind == Time }

// label returns the label of a column, or of a map's entry.
func (r reader) label(n node) (string, bool) {
	if m := r.column(n); m.Kind == Label {
		return m.Label, true
	}
	children := n.Nodes("children")
	if n.Text("expression_class") != "BOUND_FUNCTION" || n.Text("name") != "map_extract_value" || len(children) != 2 || r.column(children[0]).Kind != Labels {
		return "", false
	}
	key, ok := text(children[1])
	return key, ok && key != model.MetricNameLabel // which the map never has
}

// text returns a VARCHAR constant.
func text(n node) (string, bool) {
	s, ok := constant(n, "VARCHAR").(string)
	return s, ok
}

// micros returns a constant time in µs.
func micros(n node) (int64, bool) { return integer(constant(n, "TIMESTAMP WITH TIME ZONE")) }
