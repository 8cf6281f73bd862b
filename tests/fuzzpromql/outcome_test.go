package fuzzpromql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
)

// ask is a query with its times. Its seed determines all of it.
type ask struct {
	seed       uint64
	query      string
	start, end int64 // ms; equal: an instant query
	step       int64 // ms
	tenant     string
	lookback   time.Duration // 0: the engine's
	way        int           // index of ways
}

func (a ask) String() string {
	times := fmt.Sprintf("%d", a.start)
	if a.step != 0 {
		times = fmt.Sprintf("%d to %d step %dms", a.start, a.end, a.step)
	}
	return fmt.Sprintf("%s @ %s (lookback %s, tenant %s, %s, seed %d)", a.query, times, a.lookback, a.tenant, ways[a.way].name, a.seed)
}

// point is a float, or a histogram as text.
type point struct {
	t int64
	f float64
	h string
}

// outcome is the result of a query: an error, or values with annotations.
type outcome struct {
	err     string
	limited bool     // memory was short
	notes   []string // warnings and infos, sorted
	series  map[string][]point
	sorted  []float64 // of an instant query that ends with a sort: the values in order
	read    int64     // samples, as the engine counts them
	compare *request.Comparison
}

// run runs the query on an engine.
func run(ctx context.Context, e promql.QueryEngine, q storage.Queryable, a ask) (o outcome) {
	var asked promql.Query
	var err error
	opts := promql.NewPrometheusQueryOpts(false, a.lookback)
	if a.step == 0 {
		asked, err = e.NewInstantQuery(ctx, q, opts, a.query, time.UnixMilli(a.start))
	} else {
		asked, err = e.NewRangeQuery(ctx, q, opts, a.query, time.UnixMilli(a.start), time.UnixMilli(a.end), time.Duration(a.step)*time.Millisecond)
	}
	if err != nil {
		return outcome{err: "refused: " + err.Error()}
	}
	defer asked.Close()
	res := asked.Exec(ctx)
	o.read, o.compare = asked.Stats().Samples.SamplesRead, request.Compare(ctx, asked.Stats())
	for _, note := range res.Warnings.AsErrors() {
		o.notes = append(o.notes, note.Error())
	}
	slices.Sort(o.notes)
	if res.Err != nil {
		var limit *query.LimitError
		o.err, o.limited = plain(res.Err.Error()), errors.As(res.Err, &limit) && limit.Flag == "--query.max-memory"
		return o
	}
	o.add(res.Value, sorts(asked.Statement()))
	return o
}

// duplicates matches an error whose examples, and whose group if there are several, depend on the
// order in which the storage returns series.
var duplicates = regexp.MustCompile(`(found duplicate series for the match group ).*( on the .* hand-side of the operation).*`)

func plain(message string) string { return duplicates.ReplaceAllString(message, "$1…$2") }

// sorts reports whether the order of the query's value is significant.
func sorts(s parser.Statement) bool {
	e, ok := s.(*parser.EvalStmt)
	if !ok || e.Interval != 0 {
		return false
	}
	call, ok := e.Expr.(*parser.Call)
	return ok && (call.Func.Name == "sort" || call.Func.Name == "sort_desc")
}

func (o *outcome) add(v parser.Value, sorted bool) {
	o.series = map[string][]point{}
	put := func(ls labels.Labels, p ...point) {
		k := ls.String()
		if _, ok := o.series[k]; ok {
			k += " again"
		}
		o.series[k] = p
	}
	switch v := v.(type) {
	case promql.Scalar:
		put(labels.EmptyLabels(), point{t: v.T, f: v.V})
	case promql.String:
		put(labels.FromStrings("string", v.V))
	case promql.Vector:
		for _, s := range v {
			p := point{t: s.T, f: s.F}
			if s.H != nil {
				p.h = s.H.String()
			} else if sorted {
				o.sorted = append(o.sorted, s.F)
			}
			put(s.Metric, p)
		}
	case promql.Matrix:
		for _, s := range v {
			var ps []point
			for _, p := range s.Floats {
				ps = append(ps, point{t: p.T, f: p.F})
			}
			for _, p := range s.Histograms {
				ps = append(ps, point{t: p.T, h: p.H.String()})
			}
			slices.SortFunc(ps, func(a, b point) int { return int(a.t - b.t) })
			put(s.Metric, ps...)
		}
	}
}

// differs describes how outcomes differ, apart from their floats; "" if they do not.
func (o outcome) differs(want outcome) string {
	switch {
	case o.err != want.err:
		return fmt.Sprintf("error %q, want %q", o.err, want.err)
	case !slices.Equal(o.notes, want.notes):
		return fmt.Sprintf("notes %q, want %q", o.notes, want.notes)
	}
	for k, ps := range want.series {
		own, ok := o.series[k]
		if !ok {
			return "no series " + k
		}
		if d := apart(own, ps); d != "" {
			return fmt.Sprintf("series %s: %s", k, d)
		}
	}
	for k := range o.series {
		if _, ok := want.series[k]; !ok {
			return "extra series " + k
		}
	}
	return ""
}

// apart describes how the times and kinds of points differ.
func apart(got, want []point) string {
	for i := range min(len(got), len(want)) {
		if got[i].t != want[i].t || got[i].h != want[i].h {
			return fmt.Sprintf("point %d is (%d, %v %s), want (%d, %v %s)", i, got[i].t, got[i].f, got[i].h, want[i].t, want[i].f, want[i].h)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d points, want %d: %v, want %v", len(got), len(want), head(got), head(want))
	}
	return ""
}

func head(p []point) []point { return p[:min(len(p), 5)] }

// identical reports whether two floats are equal bit by bit, except for the payload of NaN, which
// depends on the processor.
func identical(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}
