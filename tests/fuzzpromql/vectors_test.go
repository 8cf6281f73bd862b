package fuzzpromql

import "fmt"

// Functions by the type of their arguments.
var (
	ranged = []string{
		"rate", "rate", "rate", "increase", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time",
		"sum_over_time", "count_over_time", "last_over_time", "first_over_time", "present_over_time", "stddev_over_time", "stdvar_over_time", "mad_over_time",
		"ts_of_min_over_time", "ts_of_max_over_time", "ts_of_first_over_time", "ts_of_last_over_time", "absent_over_time",
	}
	pointwise = []string{
		"abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "sgn", "deg", "rad", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
		"asinh", "acosh", "atanh", "round", "minute", "hour", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "month", "year", "timestamp",
		"histogram_count", "histogram_sum", "histogram_avg", "histogram_stddev", "histogram_stdvar", "start_timestamp",
	}
	aggregations = []string{"sum", "sum", "sum", "avg", "avg", "min", "max", "count", "group", "stddev", "stdvar"}
	arithmetic   = []string{"+", "-", "*", "/", "%", "^", "atan2"}
	comparisons  = []string{"==", "!=", ">", "<", ">=", "<="}
)

func (g generator) vector(depth int) string {
	if depth == 0 {
		return g.selector() + g.extendedInstant() + g.modifiers()
	}
	return g.one(
		option{4, func() string { return g.selector() + g.extendedInstant() + g.modifiers() }},
		option{20, func() string { return g.rangeFunction(depth) }},
		option{16, func() string { return g.aggregation(depth) }},
		option{12, func() string { return g.between(depth) }},
		option{6, func() string { return g.withScalar(depth) }},
		option{5, func() string { return g.set(depth) }},
		option{8, func() string { return g.pick(pointwise...) + "(" + g.vector(depth-1) + ")" }},
		option{3, func() string { return g.clamp(depth) }},
		option{5, func() string { return g.relabel(depth) }},
		option{5, func() string { return g.buckets(depth) }},
		option{2, func() string { return "absent(" + g.vector(depth-1) + ")" }},
		option{1, func() string { return "vector(" + g.scalar(depth-1) + ")" }},
		option{2, func() string { return "-" + g.operand(depth-1) }},
		option{1, func() string { return g.pick("minute", "hour", "day_of_week", "month", "year", "days_in_month") + "()" }},
		option{1, func() string {
			return "info(" + g.vector(depth-1) + g.pick("", `, {os=~".+"}`, `, {__name__="target_info"}`) + ")"
		}},
	)
}

func (g generator) extendedInstant() string {
	if g.IntN(80) == 0 {
		return " smoothed"
	}
	return ""
}

func (g generator) rangeFunction(depth int) string {
	m := g.matrix(depth)
	switch g.IntN(14) {
	case 0:
		return "predict_linear(" + m + ", " + g.pick("60", "3600", "-120", g.scalar(depth-1)) + ")"
	case 1:
		return "quantile_over_time(" + g.pick("0.5", "0.9", "0", "1", "-1", "2", g.scalar(depth-1)) + ", " + m + ")"
	case 2:
		return "double_exponential_smoothing(" + m + ", " + g.pick("0.5", "0.1", "0.99") + ", " + g.pick("0.3", "0.7") + ")"
	}
	return g.pick(ranged...) + "(" + m + ")"
}

// grouping generates by or without with some labels, or nothing.
func (g generator) grouping() string {
	if g.IntN(4) == 0 {
		return ""
	}
	return " " + g.pick("by", "by", "without") + " (" + g.labelList() + ") "
}

func (g generator) labelList() string {
	return g.pick("g", "g", "i", "g, i", "x", "le", "le, g", "none", "", "__name__", "g, __name__", "instance", "version")
}

func (g generator) aggregation(depth int) string {
	v := g.vector(depth - 1)
	switch g.IntN(12) {
	case 0:
		return g.pick("topk", "bottomk") + g.grouping() + "(" + g.pick("1", "2", "3", "10", "0", "-1", g.scalar(depth-1)) + ", " + v + ")"
	case 1:
		return "quantile" + g.grouping() + "(" + g.pick("0.5", "0.9", "0", "1", "-0.1", "1.1", g.scalar(depth-1)) + ", " + v + ")"
	case 2:
		return "count_values" + g.grouping() + "(" + g.pick(`"v"`, `"g"`, `"v"`) + ", " + v + ")"
	case 3:
		if g.IntN(2) == 0 {
			return "limitk" + g.grouping() + "(" + g.pick("1", "2", "5") + ", " + v + ")"
		}
		return "limit_ratio" + g.grouping() + "(" + g.pick("0.5", "-0.5", "1", "0.1") + ", " + v + ")"
	}
	return g.pick(aggregations...) + g.grouping() + "(" + v + ")"
}

// matching generates on or ignoring with some labels, and group modifiers.
func (g generator) matching(groups bool) (s string) {
	if g.IntN(2) == 0 {
		return ""
	}
	s = g.pick(" on", " on", " ignoring") + " (" + g.pick("g", "g, i", "g, i", "i", "x, i", "x", "le", "", "__name__", "g, version") + ")"
	if groups && g.IntN(3) == 0 {
		s += " " + g.pick("group_left", "group_left", "group_right") + " (" + g.pick("", "", "version", "x", "i", "g") + ")"
	}
	return s
}

// between generates an operator between vectors that often match.
func (g generator) between(depth int) string {
	l, r := g.operand(depth-1), g.operand(depth-1)
	if g.IntN(3) == 0 {
		f, window := g.pick("rate", "increase", "max_over_time", "sum_over_time"), g.window()
		l, r = f+"(c_total["+window+"])", f+"("+g.pick("d_total", "n", "c_total", `d_total{g="g1"}`)+"["+window+"])"
	}
	op, fill := g.pick(arithmetic...), ""
	if g.IntN(3) == 0 {
		op = g.pick(comparisons...) + g.pick("", "", " bool")
	}
	if g.IntN(15) == 0 {
		fill = " " + g.pick("fill (0)", "fill_left (1)", "fill_right (-2)", "fill_left (0) fill_right (NaN)")
	}
	return l + " " + op + g.matching(true) + fill + " " + r
}

func (g generator) withScalar(depth int) string {
	op := g.pick(arithmetic...)
	if g.IntN(2) == 0 {
		op = g.pick(comparisons...) + g.pick("", "", " bool")
	}
	v, s := g.operand(depth-1), g.scalar(depth-1)
	if g.IntN(15) == 0 { // trims native histograms
		v, op = g.pick("nh", "rate(nh[5m])", v), g.pick("</", ">/")
	}
	if g.IntN(2) == 0 {
		return v + " " + op + " " + s
	}
	return s + " " + op + " " + v
}

func (g generator) set(depth int) string {
	return g.operand(depth-1) + " " + g.pick("and", "or", "unless") + g.matching(false) + " " + g.operand(depth-1)
}

func (g generator) clamp(depth int) string {
	v := g.vector(depth - 1)
	switch g.IntN(4) {
	case 0:
		return "clamp(" + v + ", " + g.scalar(0) + ", " + g.scalar(0) + ")"
	case 1:
		return "round(" + v + ", " + g.pick("10", "0.1", "0", g.scalar(depth-1)) + ")"
	}
	return g.pick("clamp_min", "clamp_max") + "(" + v + ", " + g.scalar(depth-1) + ")"
}

func (g generator) relabel(depth int) string {
	v := g.vector(depth - 1)
	if g.IntN(3) == 0 {
		return fmt.Sprintf(`label_join(%s, "%s", "%s", "g", "%s")`, v, g.pick("j", "g", "i", "__name__"), g.pick("-", ""), g.pick("i", "x", "none"))
	}
	return fmt.Sprintf(`label_replace(%s, "%s", "%s", "%s", "%s")`, v, g.pick("j", "i", "g", "__name__", "bad-name"), g.pick("$1", "x", "", "$1-$1", "${1}y"),
		g.pick("g", "i", "none", "__name__"), g.pick("(.*)", "g(.*)", "i([01])", "", "[bad"))
}

// buckets generates a function of classic or native histograms.
func (g generator) buckets(depth int) string {
	v := g.pick("h_bucket", "rate(h_bucket["+g.window()+"])", "sum by (le) (rate(h_bucket["+g.window()+"]))", "sum by (le, g) (increase(h_bucket["+g.window()+"]))", "nh",
		"rate(nh["+g.window()+"])", g.vector(depth-1))
	phi := g.pick("0.5", "0.9", "0.99", "0", "1", "-1", "2", "NaN", g.scalar(depth-1))
	switch g.IntN(6) {
	case 0:
		return "histogram_fraction(" + g.pick("0", "0.1", "-Inf") + ", " + g.pick("0.5", "1", "Inf") + ", " + v + ")"
	case 1:
		return "histogram_quantiles(" + v + `, "q", 0.5, 0.9)`
	}
	return "histogram_quantile(" + phi + ", " + v + ")"
}
