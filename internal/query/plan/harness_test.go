package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

var testParser = parser.NewParser(parser.Options{
	EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
})

const testLookback = 5 * time.Minute

// testEngine returns upstream's engine.
func testEngine(t testing.TB, delayed bool) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: testLookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableDelayedNameRemoval: delayed, Parser: testParser,
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// window is the time range (ms) of a query. Step 0 is an instant query.
type window struct{ start, end, step int64 }

func (w window) options(delayed bool) Options {
	return Options{
		Start: w.start, End: w.end, Step: w.step, Lookback: testLookback, DefaultSubqueryStep: time.Minute, DelayedNames: delayed,
	}
}

// query prepares a query of upstream's engine for text, or for expr if it is not nil.
func (w window) query(t testing.TB, e *promql.Engine, q storage.Queryable, text string, expr parser.Expr) promql.Query {
	start, end := time.UnixMilli(w.start), time.UnixMilli(w.end)
	step := time.Duration(w.step) * time.Millisecond
	var out promql.Query
	var err error
	if w.step == 0 {
		out, err = e.NewInstantQuery(t.Context(), q, nil, text, start)
	} else {
		out, err = e.NewRangeQuery(t.Context(), q, nil, text, start, end, step)
	}
	require.NoError(t, err, text)
	if expr != nil {
		expr, err = promql.PreprocessExpr(Clone(expr), start, end, step)
		require.NoError(t, err)
		out.Statement().(*parser.EvalStmt).Expr = expr
	}
	t.Cleanup(out.Close)
	return out
}

// matrix groups a result's series by their labels: several series may have the same.
func matrix(r *promql.Result) map[string][]map[int64]uint64 {
	out := map[string][]map[int64]uint64{}
	add := func(l labels.Labels, fs ...promql.FPoint) {
		points := map[int64]uint64{}
		for _, f := range fs {
			points[f.T] = bits(f.F)
		}
		out[l.String()] = append(out[l.String()], points)
	}
	switch v := r.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			add(s.Metric, s.Floats...)
		}
	case promql.Vector:
		for _, s := range v {
			add(s.Metric, promql.FPoint{T: s.T, F: s.F})
		}
	case promql.Scalar:
		add(labels.EmptyLabels(), promql.FPoint{T: v.T, F: v.V})
	}
	return out
}

// bits returns the bits of a value; all NaNs are equal.
func bits(f float64) uint64 {
	if math.IsNaN(f) {
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(f)
}

// annotationsOf returns the annotations of a result.
func annotationsOf(r *promql.Result, text string) []string {
	warnings, infos := r.Warnings.AsStrings(text, 0, 0)
	out := append(warnings, infos...)
	slices.Sort(out)
	return out
}

// resolve returns the series of a storage for the selectors of a query.
func resolve(t testing.TB, q storage.Queryable, selectors []Selector) map[*parser.VectorSelector]*Resolution {
	out := map[*parser.VectorSelector]*Resolution{}
	for _, s := range selectors {
		querier, err := q.Querier(s.MinT, s.MaxT)
		require.NoError(t, err)
		res := &Resolution{}
		set := querier.Select(t.Context(), true, nil, s.Matchers...)
		for set.Next() {
			at, n := set.At(), int64(0)
			for it := at.Iterator(nil); it.Next() != chunkenc.ValNone; {
				if ts := it.AtT(); ts >= s.MinT && ts <= s.MaxT {
					n++
				}
			}
			if n > 0 {
				res.Series = append(res.Series, Series{ID: at.Labels().Hash(), Labels: at.Labels()})
				res.Rows += n
			}
		}
		require.NoError(t, set.Err())
		require.NoError(t, querier.Close())
		slices.SortFunc(res.Series, func(a, b Series) int { return labels.Compare(a.Labels, b.Labels) })
		out[s.Expr] = res
	}
	return out
}

// Prepare makes a query of a parsed expression.
func Prepare(expr parser.Expr, o Options) (*Query, error) {
	expr, err := promql.PreprocessExpr(Clone(expr), time.UnixMilli(o.Start).UTC(), time.UnixMilli(o.End).UTC(), time.Duration(o.Step)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return New(expr, o), nil
}

// planFor plans a query over the series of a storage.
func planFor(t testing.TB, q storage.Queryable, text string, o Options) *Plan {
	expr, err := testParser.ParseExpr(text)
	require.NoError(t, err, text)
	p, err := Prepare(expr, o)
	require.NoError(t, err, text)
	before := p.expr.String()
	plan := p.Build(resolve(t, q, p.Selectors()))
	require.Equal(t, before, p.expr.String(), "the caller's expression is not changed")
	return plan
}

// simulated is a storage in which the pushed subtrees of a plan have the values that upstream's
// engine computes for them.
type simulated struct {
	storage.Queryable
	t      testing.TB
	engine *promql.Engine
	plan   *Plan
	// replace, if not nil, changes the text of subtrees.
	replace *strings.Replacer
}

// Querier implements storage.Queryable.
func (s *simulated) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(mint, maxt)
	return &simulatedQuerier{q, s}, err
}

type simulatedQuerier struct {
	storage.Querier
	of *simulated
}

// Select implements storage.Querier.
func (q *simulatedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if len(ms) == 1 && ms[0].Name == PushedLabel {
		for _, p := range q.of.plan.Pushed {
			if p.Name == ms[0].Value {
				return q.of.result(p)
			}
		}
		require.FailNow(q.of.t, "a selector of no subtree", ms[0].Value)
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}

// result returns a subtree's value as series.
func (s *simulated) result(p *Pushed) storage.SeriesSet {
	values := s.values(p)
	present := make([]bool, len(p.Labels))
	var series []storage.Series
	for i := range p.Labels {
		if values[i] == nil {
			continue
		}
		present[i] = true
		floats := make([]promql.FPoint, p.Grid.N)
		for k := range floats {
			floats[k].T = p.Grid.Start + int64(k)*p.Grid.Step
			floats[k].F = math.Float64frombits(value.StaleNaN)
			if v, ok := values[i][floats[k].T]; ok {
				floats[k].F = v
			}
		}
		series = append(series, promql.NewStorageSeries(promql.Series{Metric: p.Labels[i], Floats: floats}))
	}
	raised := Raised{}
	p.Raise(s.leaves(p), raised)
	return &seriesList{series: series, at: -1, warnings: p.Annotations(present, raised)}
}

// leaves returns, parallel to the leaves of a subtree, the ordinals of the series that have a
// value, for the leaves that have annotations.
func (s *simulated) leaves(p *Pushed) [][]uint32 {
	out := make([][]uint32, len(p.Leaves))
	for k, l := range p.Leaves {
		if len(l.shape.notes) == 0 {
			continue
		}
		var params string
		for _, p := range l.Spec.Params {
			params += formatFloat(p.Value) + ", "
		}
		grid := l.Spec.Grid
		text := fmt.Sprintf("%s(%s%s[%dms] offset %dms)", strings.TrimPrefix(l.Func, "prom_"), params, matchers(l.Selector.Matchers), l.Spec.Window, l.Spec.Offset)
		for i, one := range l.Resolution.Series {
			only := inOrder{s.Queryable, func(ls labels.Labels) bool { return labels.Equal(ls, one.Labels) }}
			r := window{grid.Start, grid.End(), max(1, grid.Step)}.query(s.t, s.engine, only, text, nil).Exec(s.t.Context())
			require.NoError(s.t, r.Err, text)
			if len(r.Value.(promql.Matrix)) > 0 {
				out[k] = append(out[k], uint32(i))
			}
		}
	}
	return out
}

// asLeavesSay formats a subtree's expression with each selector changed to the range of its leaf's
// spec.
func asLeavesSay(p *Pushed) string {
	var from, to []*parser.VectorSelector
	collect := func(expr parser.Expr, into *[]*parser.VectorSelector) {
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				*into = append(*into, v)
			}
			return nil
		})
	}
	expr := Clone(p.origin.expr)
	collect(p.origin.expr, &from)
	collect(expr, &to)
	for i, e := range from {
		v := to[i]
		at := slices.IndexFunc(p.Leaves, func(l *Leaf) bool { return slices.Contains(l.exprs, e) })
		if at < 0 {
			continue // the result does not depend on this selector
		}
		l := p.Leaves[at]
		offset := time.Duration(l.Spec.Offset) * time.Millisecond
		switch at := l.Spec.Grid.Start - l.Spec.Offset; {
		case l.Spec.Grid == p.Grid:
			v.Timestamp, v.StartOrEnd, v.OriginalOffset, v.OriginalOffsetExpr = nil, 0, offset, nil
		case l.Spec.Grid.N == 1:
			v.Timestamp, v.StartOrEnd, v.OriginalOffset, v.OriginalOffsetExpr = &at, 0, 0, nil
		}
	}
	return expr.String()
}

// atTheEnd returns the labels of a subtree's series as if it were the whole query.
func atTheEnd(p *Pushed) []labels.Labels {
	out := slices.Clone(p.Labels)
	for i, l := range stripNames(out) {
		if p.Root.Shape().drops(i) {
			out[i] = l
		}
	}
	return out
}

// values evaluates a subtree with upstream's engine and returns its values by ordinal and time.
func (s *simulated) values(p *Pushed) []map[int64]float64 {
	expr := asLeavesSay(p)
	if s.replace != nil {
		expr = s.replace.Replace(expr)
	}
	w := window{p.Grid.Start, p.Grid.End(), p.Grid.Step}
	r := w.query(s.t, s.engine, s.Queryable, expr, nil).Exec(s.t.Context())
	require.NoError(s.t, r.Err, "a subtree that fails was pushed: %s", expr)
	index := map[string]int{}
	for i, l := range atTheEnd(p) {
		index[l.String()] = i
	}
	out := make([]map[int64]float64, len(p.Labels))
	for _, m := range r.Value.(promql.Matrix) {
		i, ok := index[m.Metric.String()]
		require.True(s.t, ok, "%s has a series %s that the plan does not know", expr, m.Metric)
		out[i] = map[int64]float64{}
		for _, f := range m.Floats {
			out[i][f.T] = f.F
		}
	}
	return out
}

// seriesList is a storage.SeriesSet.
type seriesList struct {
	series   []storage.Series
	at       int
	warnings annotations.Annotations
}

// Next implements storage.SeriesSet.
func (l *seriesList) Next() bool { l.at++; return l.at < len(l.series) }

// At implements storage.SeriesSet.
func (l *seriesList) At() storage.Series { return l.series[l.at] }

// Err implements storage.SeriesSet.
func (l *seriesList) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (l *seriesList) Warnings() annotations.Annotations { return l.warnings }

// describe formats a result's series in a fixed order.
func describe(m map[string][]map[int64]uint64) string {
	var out string
	for _, l := range slices.SortedFunc(maps.Keys(m), cmp.Compare[string]) {
		for _, points := range m[l] {
			out += l
			for _, ts := range slices.Sorted(maps.Keys(points)) {
				out += fmt.Sprintf(" %d:%v", ts, math.Float64frombits(points[ts]))
			}
			out += "\n"
		}
	}
	return out
}

// inOrder is a storage that always returns series in the order of their labels, and only those for
// which keep returns true.
type inOrder struct {
	storage.Queryable
	keep func(labels.Labels) bool // nil: all
}

// Querier implements storage.Queryable.
func (o inOrder) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := o.Queryable.Querier(mint, maxt)
	return inOrderQuerier{q, o.keep}, err
}

type inOrderQuerier struct {
	storage.Querier
	keep func(labels.Labels) bool
}

// Select implements storage.Querier.
func (q inOrderQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := q.Querier.Select(ctx, true, hints, ms...)
	out := &seriesList{at: -1}
	for set.Next() {
		if s := set.At(); q.keep == nil || q.keep(s.Labels()) {
			out.series = append(out.series, s)
		}
	}
	if set.Err() != nil {
		return set
	}
	return out
}
