package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/plan"
)

func (t *translation) call(e *parser.Call, at place, ordered bool) (relation, string) {
	name := e.Func.Name
	switch name {
	case "sort", "sort_desc", "sort_by_label", "sort_by_label_desc": // rows have no order
		if ordered {
			return relation{}, "the order of " + name
		}
		return t.vector(e.Args[0], at, false)
	case "vector":
		s, reason := t.scalar(e.Args[0], at)
		if reason != "" {
			return relation{}, reason
		}
		return t.single("prom_labels([], [])", s, ordered), ""
	case "absent", "absent_over_time":
		var in relation
		var reason string
		sel, _ := e.Args[0].(*parser.VectorSelector)
		if e.Func.Name == "absent" {
			in, reason = t.vector(e.Args[0], at, false)
		} else {
			if m, ok := e.Args[0].(*parser.MatrixSelector); ok {
				sel, _ = m.VectorSelector.(*parser.VectorSelector)
			}
			in, reason = t.window(e, "last_over_time", at, false)
		}
		if reason != "" {
			return in, reason
		}
		var names, values []string
		plan.AbsentLabels(sel).Range(func(l labels.Label) { names, values = append(names, l.Name), append(values, l.Value) })
		grid := t.grid(at)
		value := scalar{fmt.Sprintf("prom_absent(v, %s)", grid.column), []string{in.name, grid.table}}
		return t.single(fmt.Sprintf("prom_labels(%s, %s)", texts(names), texts(values)), value, ordered), ""
	case "timestamp":
		if s, ok := e.Args[0].(*parser.VectorSelector); ok {
			if s.Timestamp != nil && s.OriginalOffset != 0 {
				return relation{}, "timestamp() takes @ and no offset"
			}
			return t.selector(s, at, ordered, leaf{table: "marked_samples", function: "prom_timestamp", window: t.lookback})
		}
		grid := t.grid(at)
		return t.mapped(e.Args[0], at, ordered, fmt.Sprintf("prom_timestamps(v, %s)", grid.column), []string{grid.table})
	case "histogram_quantile":
		phi, reason := t.scalar(e.Args[0], at)
		if reason != "" {
			return relation{}, reason
		}
		in, reason := t.vector(e.Args[1], at, ordered)
		if reason == "" && in.many {
			reason = severalNames
		}
		if reason != "" {
			return in, reason
		}
		in.named, in.parts = false, false
		in.name = t.add(fmt.Sprintf("SELECT %s FROM %s GROUP BY ALL", columns("prom_without(labels, ['le']) AS labels",
			fmt.Sprintf("prom_histogram_quantile(%s, TRY_CAST(labels['le'] AS DOUBLE), v) AS v", phi.sql), when(ordered, "min(i) AS i")),
			strings.Join(append([]string{in.name}, phi.from...), ", ")))
		return in, ""
	case "label_replace", "label_join":
		return t.relabel(e, at, ordered)
	}
	if _, ok := plan.Ranges[name]; ok {
		return t.window(e, name, at, ordered)
	}
	if _, ok := plan.Maths[name]; ok {
		return t.math(e, at, ordered)
	}
	return relation{}, name + "()"
}

// window translates a function of a range.
func (t *translation) window(e *parser.Call, name string, at place, ordered bool) (relation, string) {
	l := leaf{table: "samples", function: "prom_" + name, keepsName: plan.Ranges[name].KeepsName}
	params, window, reason := plan.RangeArgs(e)
	if reason != "" {
		return relation{}, reason
	}
	for _, p := range params {
		l.parameters += fmt.Sprintf(" || ' %s=%s'", p.Name, plain(p.Value))
	}
	switch w := window.(type) {
	case *parser.MatrixSelector:
		l.window = w.Range.Milliseconds()
		return t.selector(w.VectorSelector.(*parser.VectorSelector), at, ordered, l)
	case *parser.SubqueryExpr: // its values are those at steps of its own
		// Source: evaluator.subqueryTimeRange in upstream's promql/engine.go.
		offset, reason := offsetOf(at, w.Timestamp, w.OriginalOffset.Milliseconds())
		if reason != "" {
			return relation{}, reason
		}
		in := place{step: w.Step.Milliseconds(), inner: true}
		if in.step == 0 {
			in.step = t.subqueryStep
		}
		first := at.start - offset - w.Range.Milliseconds()
		if in.start = in.step * (first / in.step); in.start <= first {
			in.start += in.step
		}
		last := at.end() - offset
		if in.step <= 0 || last < in.start {
			return relation{}, "the subquery has no steps"
		}
		in.n = (last-in.start)/in.step + 1
		of, reason := t.vector(w.Expr, in, ordered)
		if reason == "" && of.many && !l.keepsName {
			reason = severalNames
		}
		if reason != "" {
			return of, reason
		}
		if of.parts { // of which one has a value at a step
			of.parts, of.name = false, t.add(fmt.Sprintf("SELECT %s FROM %s GROUP BY ALL",
				columns(when(of.named, "metric"), "labels", "prom_max(v) AS v", when(ordered, "min(i) AS i")), of.name))
		}
		of.named = of.named && l.keepsName
		grid, inner, shift := t.grid(at), t.grid(in), ""
		if offset != 0 {
			shift = ", " + interval(offset)
		}
		return t.each(of, ordered, fmt.Sprintf("prom_over('%s', v, %s, prom_window(%s, %s%s)%s)", name, inner.column, grid.column, interval(w.Range.Milliseconds()), shift, l.parameters),
			both([]string{grid.table}, []string{inner.table})), ""
	}
	return relation{}, "a range of another kind"
}

func (t *translation) math(e *parser.Call, at place, ordered bool) (relation, string) {
	parameters, from := []string{"NULL", "NULL"}, []string(nil)
	for i, a := range e.Args[min(1, len(e.Args)):] {
		s, reason := t.scalar(a, at)
		if reason != "" {
			return relation{}, reason
		}
		parameters[i], from = s.sql, both(from, s.from)
	}
	if e.Func.Name == "round" && len(e.Args) == 1 {
		parameters[0] = "[1]"
	}
	value := "prom_math('" + e.Func.Name + "', %s, " + strings.Join(parameters, ", ") + ")"
	if len(e.Args) == 0 {
		grid := t.grid(at)
		return t.single("prom_labels([], [])", scalar{fmt.Sprintf(value, "prom_time("+grid.column+")"), []string{grid.table}}, ordered), ""
	}
	return t.mapped(e.Args[0], at, ordered, fmt.Sprintf(value, "v"), from)
}

// single is a relation of one series.
func (t *translation) single(labels string, s scalar, ordered bool) relation {
	body := "SELECT " + columns(labels+" AS labels", s.sql+" AS v", when(ordered, "0::UINTEGER AS i"))
	if len(s.from) > 0 {
		body += " FROM " + strings.Join(s.from, ", ")
	}
	return relation{name: t.add(body), sides: 1}
}

// relabel translates label_replace() and label_join().
func (t *translation) relabel(e *parser.Call, at place, ordered bool) (relation, string) {
	args := make([]string, len(e.Args))
	for i, a := range e.Args[1:] {
		s, _ := plan.Unwrap(a).(*parser.StringLiteral)
		args[i+1] = s.Val
	}
	join, label := e.Func.Name == "label_join", ""
	names := []string{args[1]}
	if join {
		names = append(names, args[3:]...)
	} else {
		names = append(names, args[3])
	}
	for _, n := range names {
		if !model.UTF8Validation.IsValidLabelName(n) || slices.Contains([]string{model.MetricNameLabel, model.MetricTypeLabel, model.MetricUnitLabel}, n) {
			return relation{}, "it reads or sets the metric's name, or a label that no series has"
		}
	}
	if join {
		parts := make([]string, len(names)-1)
		for i, n := range names[1:] {
			parts[i] = "coalesce(labels[" + duck.Literal(n) + "], '')"
		}
		label = fmt.Sprintf("prom_label(labels, %s, concat_ws(%s, %s))", duck.Literal(args[1]), duck.Literal(args[2]), strings.Join(parts, ", "))
	} else {
		replacement, ok := rewritten(args[2])
		if !ok {
			return relation{}, "the replacement names a group"
		}
		label = fmt.Sprintf("prom_label_replace(labels, %s, %s, %s, %s)", duck.Literal(args[1]), duck.Literal(replacement), duck.Literal(args[3]), duck.Literal(args[4]))
	}
	in, reason := t.vector(e.Args[0], at, ordered)
	if reason != "" {
		return in, reason
	}
	in.name = t.add(fmt.Sprintf("SELECT %s FROM %s", columns(when(in.named, "metric"), label+" AS labels", "v", when(ordered, "i")), in.name))
	return in, ""
}

// rewritten is a replacement of Go's regular expressions in RE2's syntax: $1 and ${1} are \1.
func rewritten(s string) (string, bool) {
	var out strings.Builder
	for s != "" {
		c := s[0]
		s = s[1:]
		switch {
		case c == '\\':
			out.WriteString(`\\`)
		case c != '$' || s == "":
			out.WriteByte(c)
		case s[0] == '$':
			out.WriteByte('$')
			s = s[1:]
		default:
			name := strings.TrimLeft(s, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
			name, rest := s[:len(s)-len(name)], name
			if s[0] == '{' {
				var closed bool
				if name, rest, closed = strings.Cut(s[1:], "}"); !closed {
					return "", false
				}
			}
			if n, err := strconv.Atoi(name); err != nil || n > 9 || len(name) != 1 {
				return "", false
			}
			out.WriteString(`\` + name)
			s = rest
		}
	}
	return out.String(), true
}

// scalar is a list of a value for each step as an expression over tables.
type scalar struct {
	sql  string
	from []string
}

func (t *translation) scalar(e parser.Expr, at place) (scalar, string) {
	if v, ok := plan.Constant(e); ok {
		return scalar{sql: "[" + float(v) + "]"}, ""
	}
	switch e := e.(type) {
	case *parser.ParenExpr:
		return t.scalar(e.Expr, at)
	case *parser.StepInvariantExpr:
		return t.scalar(e.Expr, at.once())
	case *parser.UnaryExpr:
		s, reason := t.scalar(e.Expr, at)
		if e.Op == parser.SUB {
			s.sql = fmt.Sprintf("prom_math('neg', %s, NULL, NULL)", s.sql)
		}
		return s, reason
	case *parser.BinaryExpr:
		l, reason := t.scalar(e.LHS, at)
		if reason != "" {
			return l, reason
		}
		r, reason := t.scalar(e.RHS, at)
		return scalar{fmt.Sprintf("prom_binary('%s', %s, %s)", plan.Operator(e, false), l.sql, r.sql), both(l.from, r.from)}, reason
	case *parser.Call:
		switch e.Func.Name {
		case "time":
			grid := t.grid(at)
			return scalar{fmt.Sprintf("prom_time(%s)", grid.column), []string{grid.table}}, ""
		case "max_of", "min_of":
			l, reason := t.scalar(e.Args[0], at)
			if reason != "" {
				return l, reason
			}
			r, reason := t.scalar(e.Args[1], at)
			clamp := map[string]string{"max_of": "clamp_min", "min_of": "clamp_max"}[e.Func.Name]
			return scalar{fmt.Sprintf("prom_math('%s', %s, %s, NULL)", clamp, l.sql, r.sql), both(l.from, r.from)}, reason
		case "scalar":
			in, reason := t.vector(e.Args[0], at, false)
			if reason != "" {
				return scalar{}, reason
			}
			grid := t.grid(at)
			name := t.add(fmt.Sprintf("SELECT prom_scalar(v, %s) AS scalar FROM %s, %s", grid.column, in.name, grid.table))
			return scalar{name + ".scalar", []string{name}}, ""
		}
		return scalar{}, e.Func.Name + "()"
	}
	return scalar{}, "a scalar of another kind"
}

// both are the tables of two expressions, each once.
func both(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// plain is a number in a spec.
func plain(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
