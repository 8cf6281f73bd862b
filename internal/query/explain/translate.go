package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/request"
)

// Translation is a PromQL query as a statement over the catalog's tables, as a person would write
// it: docs/sql.md describes what the statement calls.
type Translation struct {
	// SQL returns the columns metric, labels, ts and value of promql(), in no order.
	SQL string
	// Kept are the parts that the statement leaves to promql(), with the reasons.
	Kept []string
}

// Translate returns a statement with the rows of a query, whose Lookback must be set. Every query
// has one. It reads no store. It fails with a *QuestionError.
func Translate(ask request.Question) (Translation, error) {
	expr, err := parser.NewParser(engine.ParserOptions()).ParseExpr(ask.Text)
	if err != nil {
		return Translation{}, &QuestionError{err}
	}
	out, err := translateExpr(expr, ask)
	if err != nil {
		return Translation{}, &QuestionError{err}
	}
	return out, nil
}

// translateExpr translates an expression that is not preprocessed, which it is afterwards.
func translateExpr(expr parser.Expr, q request.Question) (Translation, error) {
	if q.Step <= 0 {
		q.Start, q.Step = q.End, 0
	}
	at := place{start: q.Start.UnixMilli(), step: max(1, q.Step.Milliseconds())}
	at.n = (q.End.UnixMilli()-at.start)/at.step + 1
	text := expr.String()
	expr, err := promql.PreprocessExpr(expr, q.Start, q.End, q.Step)
	if err != nil {
		return Translation{}, fmt.Errorf("prepare %q: %w", text, err)
	}
	t := &translation{lookback: q.Lookback.Milliseconds(), subqueryStep: engine.DefaultSubqueryStep.Milliseconds()}
	grid := t.grid(at)
	root, reason := t.translate(expr, at, false)
	if reason != "" {
		kept := []string{fmt.Sprintf("%s: %s", text, reason)}
		return Translation{SQL: "FROM " + call(expr.String(), at), Kept: kept}, nil
	}
	metric := "metric"
	if !root.named {
		metric = "NULL::TEXT AS metric"
	}
	var ctes []string
	for _, c := range t.ctes {
		ctes = append(ctes, c.name+" AS ("+c.body+")")
	}
	return Translation{SQL: fmt.Sprintf("WITH %s\nSELECT %s, labels, unnest(prom_points(v, %s), recursive := true) FROM %s, %s",
		strings.Join(ctes, ",\n"), metric, grid.column, root.name, grid.table), Kept: t.kept}, nil
}

// place is the times at which an expression is evaluated.
type place struct {
	start, step, n int64 // ms; n is at least 1
	inner          bool  // below a subquery
}

func (p place) end() int64 { return p.start + (p.n-1)*p.step }

// once is the place of an expression that has the same values at all steps.
func (p place) once() place {
	p.n = 1
	return p
}

// relation is a query of the statement: a row for each series, with its labels and, in v, a list of
// a value for each step, or of one value that holds at all of them.
type relation struct {
	name  string
	named bool // it has the column metric
	many  bool // of several metrics: labels do not identify a series
	// parts: a series may have several rows, each with values at other steps.
	parts bool
	// sides are the vectors that or has joined. Each has 100 million numbers of the column i, which
	// has the order of the series if it was asked for.
	sides int
}

// sideNumbers are the numbers of series of one side of or.
const sideNumbers = 100_000_000

// translation collects the queries of a statement.
type translation struct {
	lookback, subqueryStep int64 // ms
	ctes                   []cte
	kept                   []string
}

type cte struct{ name, body string }

// add returns the name of a query, which is the given one or a number. Equal queries are one.
func (t *translation) add(body string, names ...string) string {
	if i := slices.IndexFunc(t.ctes, func(c cte) bool { return c.body == body }); i >= 0 {
		return t.ctes[i].name
	}
	n := 1
	for _, c := range t.ctes {
		if strings.HasPrefix(c.name, "q") {
			n++
		}
	}
	name := cmp.Or(append(names, "q"+strconv.Itoa(n))...)
	t.ctes = append(t.ctes, cte{name, body})
	return name
}

// grid is a table with the steps of a place in its column.
type grid struct{ table, column string }

// grid returns the grid of a place.
func (t *translation) grid(at place) grid {
	body := fmt.Sprintf("SELECT prom_grid(%s, %s, %s)", moment(at.start), moment(at.end()), interval(at.step))
	n := 1
	for _, c := range t.ctes {
		if strings.HasPrefix(c.name, "g") {
			if c.body == body {
				break
			}
			n++
		}
	}
	g := grid{"g", "grid"}
	if n > 1 {
		g = grid{"g" + strconv.Itoa(n), "grid" + strconv.Itoa(n)}
	}
	t.add(body, g.table+"("+g.column+")")
	return g
}

// vector translates an expression that is a vector. ordered: the relation needs the column i. What
// it cannot translate becomes a call of promql, unless the order of its series matters; then it
// returns the reason.
func (t *translation) vector(e parser.Expr, at place, ordered bool) (relation, string) {
	ctes, kept := len(t.ctes), len(t.kept)
	r, reason := t.translate(e, at, ordered)
	if reason == "" {
		return r, ""
	}
	t.ctes, t.kept = t.ctes[:ctes], t.kept[:kept]
	if ordered || e.Type() != parser.ValueTypeVector {
		return relation{}, reason
	}
	t.kept = append(t.kept, fmt.Sprintf("%s: %s", e, reason))
	g := t.grid(at)
	body := fmt.Sprintf("SELECT metric, labels, prom_instant(ts, value, prom_window(%s, '1ms')) AS v FROM %s, %s GROUP BY ALL", g.column, call(e.String(), at), g.table)
	return relation{name: t.add(body), named: true, many: true, sides: 1}, ""
}

func (t *translation) translate(e parser.Expr, at place, ordered bool) (relation, string) {
	if e.Type() == parser.ValueTypeScalar { // the whole query
		s, reason := t.scalar(e, at)
		if reason != "" {
			return relation{}, reason
		}
		return t.single("prom_labels([], [])", s, ordered), ""
	}
	switch e := e.(type) {
	case *parser.ParenExpr:
		return t.translate(e.Expr, at, ordered)
	case *parser.StepInvariantExpr:
		return t.translate(e.Expr, at.once(), ordered)
	case *parser.VectorSelector:
		return t.selector(e, at, ordered, leaf{table: "marked_samples", function: "prom_instant", window: t.lookback, keepsName: true})
	case *parser.UnaryExpr:
		if e.Op == parser.ADD {
			return t.translate(e.Expr, at, ordered)
		}
		return t.mapped(e.Expr, at, ordered, "prom_math('neg', v, NULL, NULL)", nil)
	case *parser.BinaryExpr:
		return t.binary(e, at, ordered)
	case *parser.AggregateExpr:
		return t.aggregate(e, at, ordered)
	case *parser.Call:
		return t.call(e, at, ordered)
	}
	return relation{}, fmt.Sprintf("a %s", parser.DocumentedType(e.Type()))
}

// call is a call of promql.
func call(text string, at place) string {
	return fmt.Sprintf("promql(%s, %s, %s, %s)", duck.Literal(text), moment(at.start), moment(at.end()), interval(at.step))
}

// moment is a time (ms) as SQL, in UTC as the sessions of statements are.
func moment(ms int64) string {
	return "'" + time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.999") + "'"
}

// interval is a duration (ms) as a text that DuckDB and PromQL read.
func interval(ms int64) string {
	for _, unit := range []struct {
		ms   int64
		name string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "m"}, {1000, "s"}} {
		if ms != 0 && ms%unit.ms == 0 {
			return fmt.Sprintf("'%d%s'", ms/unit.ms, unit.name)
		}
	}
	return fmt.Sprintf("'%dms'", ms)
}

// exact is the number of digits with which DuckDB's DECIMAL has the bits of a DOUBLE.
const exact = 15

// float is a number as SQL that has its bits.
func float(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if math.IsInf(f, 0) || math.IsNaN(f) || f == 0 && math.Signbit(f) || len(s) > exact {
		return "'" + strconv.FormatFloat(f, 'g', -1, 64) + "'::DOUBLE"
	}
	return s
}

// texts is a list of texts as SQL.
func texts(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = duck.Literal(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// columns joins the expressions of a query that are not "".
func columns(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), ", ")
}

// when returns s if c holds.
func when(c bool, s string) string {
	if c {
		return s
	}
	return ""
}
