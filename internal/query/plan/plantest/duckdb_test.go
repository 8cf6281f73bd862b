package plantest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/duck/promsql/kernel"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
	"github.com/promlake/promlake/tests/support/plantest"
)

const (
	lookback     = 5 * time.Minute
	subqueryStep = time.Minute
)

var promqlParser = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true})

func engine(t testing.TB, delayed bool) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableDelayedNameRemoval: delayed, Parser: promqlParser,
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// lake is a DuckDB, and series.
type lake struct {
	db     *duck.DB
	series plantest.Memory
	// counters: statements that ran, those that failed because buckets were not monotonic, queries
	// that became one statement, and subtrees that were computed without one
	statements, forced, whole, computed int
}

func openLake(t testing.TB, series plantest.Memory) *lake {
	dir := t.TempDir()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 30, Threads: 2, Connections: 2, TempDir: func() (string, error) { return dir, nil }, Setup: promsql.Register,
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &lake{db: db, series: series}
}

// scans publishes the values of the leaves of a subtree until release.
func (l *lake) scans(t testing.TB, p *plan.Pushed) (scans []plan.Scan, release func()) {
	var published []*promsql.Published
	for _, leaf := range p.Leaves {
		k, err := promsql.NewKernel(leaf.Func, leaf.Spec.String())
		require.NoError(t, err)
		var ordinals []uint32
		var lists [][]float64
		for i, s := range leaf.Resolution.Series {
			at := slices.IndexFunc(l.series, func(m promql.Series) bool { return m.Metric.Hash() == s.ID })
			var ts []int64
			var v []float64
			for _, f := range l.series[at].Floats {
				ts, v = append(ts, f.T), append(v, f.F)
			}
			out := make([]float64, leaf.Spec.Grid.N)
			present, err := k.Eval(ts, v, out, 0)
			require.NoError(t, err)
			if present {
				ordinals, lists = append(ordinals, uint32(i)), append(lists, out)
			}
		}
		k.Close()
		rows := promsql.Publish(ordinals, lists)
		published = append(published, rows)
		scans = append(scans, plan.Scan(fmt.Sprintf("SELECT i, v FROM prom_rows(%d)", rows.ID())))
	}
	return scans, func() {
		for _, rows := range published {
			rows.Close()
		}
	}
}

// resolve returns the lake's series for the selectors of a query.
func (l *lake) resolve(selectors []plan.Selector) map[*parser.VectorSelector]*plan.Resolution {
	out := map[*parser.VectorSelector]*plan.Resolution{}
	for _, s := range selectors {
		r := &plan.Resolution{}
		for _, m := range l.series.Matching(s.Matchers) {
			if slices.ContainsFunc(m.Floats, func(p promql.FPoint) bool { return p.T >= s.MinT && p.T <= s.MaxT }) {
				r.Series = append(r.Series, plan.Series{ID: m.Metric.Hash(), Labels: m.Metric})
				r.Rows += int64(len(m.Floats))
			}
		}
		out[s.Expr] = r
	}
	return out
}

// executed is a storage that runs the statements of a plan's subtrees.
type executed struct {
	*lake
	t    testing.TB
	plan *plan.Plan
	err  error // of the last statement
}

// Querier implements storage.Queryable.
func (e *executed) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := e.series.Querier(mint, maxt)
	return &executedQuerier{q, e}, err
}

type executedQuerier struct {
	storage.Querier
	of *executed
}

// Select implements storage.Querier.
func (q *executedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	at := slices.IndexFunc(q.of.plan.Pushed, func(p *plan.Pushed) bool {
		return len(ms) == 1 && ms[0].Name == plan.PushedLabel && ms[0].Value == p.Name
	})
	if at < 0 {
		return q.Querier.Select(ctx, sorted, hints, ms...)
	}
	return q.of.run(ctx, q.of.plan.Pushed[at])
}

// run runs the statement of a subtree over scans of all samples, or computes the subtree.
func (e *executed) run(ctx context.Context, p *plan.Pushed) storage.SeriesSet {
	var s plan.Statement
	var lists [][]float64
	var err error
	if _, leaf := p.Root.(*plan.Leaf); !leaf && p.Driver() == plan.DirectDriver {
		lists, err = e.compute(ctx, p)
		e.computed++
	} else {
		s, lists, err = e.statement(ctx, p)
		e.statements++
	}
	if err != nil {
		e.err = err
		return storage.ErrSeriesSet(err)
	}
	present := make([]bool, len(p.Labels))
	var out []storage.Series
	for i, v := range lists {
		if v == nil {
			continue
		}
		require.Contains(e.t, []int{1, p.Grid.N}, len(v), "%s\n%s", p, s.SQL)
		present[i] = slices.ContainsFunc(v, func(f float64) bool { return !value.IsStaleNaN(f) })
		floats := make([]promql.FPoint, p.Grid.N)
		for k := range floats {
			floats[k] = promql.FPoint{T: p.Grid.Start + int64(k)*p.Grid.Step, F: v[k%len(v)]}
		}
		if present[i] {
			out = append(out, promql.NewStorageSeries(promql.Series{Metric: p.Labels[i], Floats: floats}))
		}
	}
	raised := plan.Raised{}
	p.Raise(e.leaves(ctx, p), raised)
	return plantest.List(out, p.Annotations(present, raised))
}

// statement runs the statement of a subtree and returns its values by ordinal.
func (e *executed) statement(ctx context.Context, p *plan.Pushed) (plan.Statement, [][]float64, error) {
	scans, release := e.scans(e.t, p)
	defer release()
	budget := promsql.NewBudget(1 << 28)
	s := p.Statement(scans, fmt.Sprint(budget.ID()))
	lists := make([][]float64, len(p.Root.Shape().Labels))
	err := e.db.Each(ctx, s.SQL, s.Args, []string{duck.UInteger, duck.Doubles}, func(n int, c []duck.Vector) error {
		at, values := c[1].List()
		for k, i := range c[0].Uint32s()[:n] {
			require.Nil(e.t, lists[i], "two rows of one series: %s", s.SQL)
			lists[i] = slices.Clone(values.Float64s()[at[k].Offset : at[k].Offset+at[k].Length])
		}
		return nil
	})
	if budget.ForcedMonotonicity() {
		err = plan.ErrForcedMonotonicity
	}
	// A thread of DuckDB may still hold memory that it frees after the statement; this test does
	// not check that.
	_ = budget.Close()
	return s, lists, err
}

// compute computes a subtree and returns its values by ordinal.
func (e *executed) compute(ctx context.Context, p *plan.Pushed) ([][]float64, error) {
	leaves := make([][]vector.Row, len(p.Leaves))
	for k, l := range p.Leaves {
		_, lists, err := e.statement(ctx, &plan.Pushed{Root: l, Leaves: p.Leaves[k : k+1], Grid: l.Spec.Grid})
		require.NoError(e.t, err)
		for i, v := range lists {
			if v != nil {
				leaves[k] = append(leaves[k], vector.Row{I: uint32(i), V: v})
			}
		}
	}
	rows, err := p.Compute(leaves, &plan.Tools{Memory: e.memory(), Over: e.over})
	out := make([][]float64, len(p.Labels))
	last := -1
	for _, r := range rows {
		require.Greater(e.t, int(r.I), last, "%s", p)
		require.Len(e.t, r.V, p.Grid.N, "%s", p)
		out[r.I], last = r.V, int(r.I)
	}
	return out, err
}

// memory is that of the operators outside of statements.
func (e *executed) memory() vector.Memory {
	b := promsql.NewBudget(0)
	e.t.Cleanup(func() { require.NoError(e.t, b.Close()) })
	return vector.Memory{Room: undefined, Budget: b}
}

// undefined returns memory for n values.
func undefined(n int) []float64 { return slices.Repeat([]float64{math.Pi}, n) }

// over is plan.Tools.Over.
func (e *executed) over(function string, times plan.Grid, spec plan.Spec, rows []vector.Row) (out []vector.Row, err error) {
	k, err := promsql.NewKernel("prom_"+function, spec.String())
	require.NoError(e.t, err)
	defer k.Close()
	for _, r := range rows {
		var at []int64
		var v []float64
		for i, f := range r.V {
			if !value.IsStaleNaN(f) {
				at, v = append(at, times.Start+int64(i)*times.Step), append(v, f)
			}
		}
		values := undefined(spec.Grid.N)
		present, err := k.Eval(at, v, values, 0)
		require.NoError(e.t, err)
		if present {
			out = append(out, vector.Row{I: r.I, V: values})
		}
	}
	return out, nil
}

// leaves returns, parallel to the leaves of a subtree, the ordinals of the series that have a
// value.
func (e *executed) leaves(ctx context.Context, p *plan.Pushed) [][]uint32 {
	out := make([][]uint32, len(p.Leaves))
	for k, l := range p.Leaves {
		_, lists, err := e.statement(ctx, &plan.Pushed{Root: l, Leaves: p.Leaves[k : k+1], Grid: l.Spec.Grid})
		require.NoError(e.t, err)
		for i, v := range lists {
			if slices.ContainsFunc(v, func(f float64) bool { return !value.IsStaleNaN(f) }) {
				out[k] = append(out[k], uint32(i))
			}
		}
	}
	return out
}

// window is the time range (ms) of a query. Step 0 is an instant query.
type window struct{ start, end, step int64 }

var windows = []window{{900_000, 900_000, 0}, {600_000, 960_000, 60_000}, {0, 1_201_000, 31_001}}

// answer evaluates text, or expr if it is not nil.
func (w window) answer(t testing.TB, e *promql.Engine, q storage.Queryable, text string, expr parser.Expr) *promql.Result {
	start, end, step := time.UnixMilli(w.start), time.UnixMilli(w.end), time.Duration(w.step)*time.Millisecond
	var query promql.Query
	var err error
	if w.step == 0 {
		query, err = e.NewInstantQuery(t.Context(), q, nil, text, start)
	} else {
		query, err = e.NewRangeQuery(t.Context(), q, nil, text, start, end, step)
	}
	require.NoError(t, err, text)
	if expr != nil {
		expr, err = promql.PreprocessExpr(plan.Clone(expr), start, end, step)
		require.NoError(t, err)
		query.Statement().(*parser.EvalStmt).Expr = expr
	}
	t.Cleanup(query.Close)
	return query.Exec(t.Context())
}

// prepare makes a query of a parsed expression.
func prepare(expr parser.Expr, o plan.Options) (*plan.Query, error) {
	expr, err := promql.PreprocessExpr(expr, time.UnixMilli(o.Start).UTC(), time.UnixMilli(o.End).UTC(), time.Duration(o.Step)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return plan.New(expr, o), nil
}

// ask answers a query through its plan. A query that needs the engine's quantiles is planned again.
// With direct, what can be is computed without statements.
func (l *lake) ask(t testing.TB, e *promql.Engine, text string, w window, delayed, direct bool) (*promql.Result, *plan.Plan) {
	o := plan.Options{Start: w.start, End: w.end, Step: w.step, Lookback: lookback, DefaultSubqueryStep: subqueryStep, DelayedNames: delayed}
	if direct {
		o.MinRows, o.Kernels = 1, true
	}
	for {
		expr, err := promqlParser.ParseExpr(text)
		require.NoError(t, err, text)
		q, err := prepare(expr, o)
		require.NoError(t, err, text)
		p := q.Build(l.resolve(q.Selectors()))
		run := &executed{lake: l, t: t, plan: p}
		r := w.answer(t, e, run, text, p.Expr)
		if errors.Is(run.err, plan.ErrForcedMonotonicity) && !o.EngineQuantiles {
			o.EngineQuantiles = true
			l.forced++
			continue
		}
		require.NoError(t, run.err, "%s\n%s", text, p)
		if _, ok := p.Expr.(*parser.VectorSelector); ok && len(p.Pushed) == 1 {
			l.whole++
		}
		return r, p
	}
}

// TestRangeFunctionsArePushed holds the planner's range functions against the list that C code is
// made from: each is a leaf of its own name. instant and timestamp are no functions of ranges.
func TestRangeFunctionsArePushed(t *testing.T) {
	l := openLake(t, plantest.Load(t, plantest.Read(t, "../testdata/operated.txt")))
	list, err := kernel.Headers.ReadFile("functions.h")
	require.NoError(t, err)
	listed := regexp.MustCompile(`X\(\w+, "(\w+)"`).FindAllStringSubmatch(string(list), -1)
	require.Greater(t, len(listed), 20)
	for _, m := range listed {
		f, ok := parser.Functions[m[1]]
		if !ok || f.ArgTypes[len(f.ArgTypes)-1] != parser.ValueTypeMatrix && f.ArgTypes[0] != parser.ValueTypeMatrix {
			require.Contains(t, []string{"instant", "timestamp"}, m[1])
			continue
		}
		args := make([]string, len(f.ArgTypes))
		for i, a := range f.ArgTypes {
			args[i] = "0.5"
			if a == parser.ValueTypeMatrix {
				args[i] = "a[5m]"
			}
		}
		expr, err := promqlParser.ParseExpr(m[1] + "(" + strings.Join(args, ", ") + ")")
		require.NoError(t, err)
		q, err := prepare(expr, plan.Options{Start: 600_000, End: 660_000, Step: 60_000, Lookback: lookback, DefaultSubqueryStep: subqueryStep})
		require.NoError(t, err)
		p := q.Build(l.resolve(q.Selectors()))
		require.Len(t, p.Pushed, 1, m[1])
		require.Equal(t, "prom_"+m[1], p.Pushed[0].Leaves[0].Func)
	}
}

// TestStatementsAnswerAlike runs the statements of plans in DuckDB and expects upstream's answer to
// the whole query: values, labels, errors and annotations, in both modes of name removal.
func TestStatementsAnswerAlike(t *testing.T) {
	l := openLake(t, plantest.Load(t, plantest.Read(t, "../testdata/operated.txt")))
	for _, s := range plantest.Sections(t, "../testdata/operators.txt") {
		t.Run(s.Name, func(t *testing.T) {
			for _, delayed := range []bool{false, true} {
				e := engine(t, delayed)
				for _, text := range s.Lines {
					for _, w := range windows {
						if w.step > 0 && strings.HasSuffix(text, "m]") {
							continue // a range query cannot return a range
						}
						want := w.answer(t, e, l.series, text, nil)
						for _, direct := range []bool{false, true} {
							got, p := l.ask(t, e, text, w, delayed, direct)
							requireAlike(t, want, got, text, p)
						}
					}
				}
			}
		})
	}
	t.Logf("%d statements ran, %d queries were one, %d had to be planned again, %d subtrees were computed", l.statements, l.whole, l.forced, l.computed)
	require.Positive(t, l.forced)
	require.Greater(t, l.computed, l.statements/10)
	require.Greater(t, l.whole, l.statements/2)
}

// TestRandomStatementsAnswerAlike does the same over random label sets and expressions.
func TestRandomStatementsAnswerAlike(t *testing.T) {
	l, engines := openLake(t, plantest.NewChance(0).Series()), map[bool]*promql.Engine{false: engine(t, false), true: engine(t, true)}
	for seed := range 500 {
		c := plantest.NewChance(1_000_000 + seed)
		series, text, delayed := c.Series(), c.Vector(3), c.IntN(2) == 0
		if _, err := promqlParser.ParseExpr(text); err != nil || len(series) == 0 {
			continue // such as a label in on and in group_left
		}
		l.series = series
		w := window{600_000, 660_000, 60_000}
		if c.IntN(3) == 0 {
			w = window{660_000, 660_000, 0}
		}
		want := w.answer(t, engines[delayed], series, text, nil)
		for _, direct := range []bool{false, true} {
			got, p := l.ask(t, engines[delayed], text, w, delayed, direct)
			requireAlike(t, want, got, text, p)
		}
	}
}

// requireAlike compares answers. Sums are taken in another order than upstream's.
func requireAlike(t testing.TB, want, got *promql.Result, text string, p *plan.Plan) {
	if want.Err != nil {
		require.Error(t, got.Err, "%s\n%s", text, p)
		// upstream names one of several series, in no fixed order
		a, _, _ := strings.Cut(want.Err.Error(), " {")
		b, _, _ := strings.Cut(got.Err.Error(), " {")
		require.Equal(t, a, b, "%s\n%s", text, p)
		return
	}
	require.NoError(t, got.Err, "%s\n%s", text, p)
	a, b := matrix(want), matrix(got)
	for i := range max(len(a), len(b)) {
		require.Less(t, i, min(len(a), len(b)), "%s: %d series, want %d\n%v\n%v\n%s", text, len(b), len(a), a, b, p)
		require.Equal(t, a[i].Metric.String(), b[i].Metric.String(), "%s\n%s", text, p)
		require.Len(t, b[i].Floats, len(a[i].Floats), "%s: %s\n%v\n%v\n%s", text, a[i].Metric, a[i], b[i], p)
		for k, x := range a[i].Floats {
			y := b[i].Floats[k]
			require.True(t, x.T == y.T && same(x.F, y.F), "%s: %s at %d: %v, want %v at %d\n%s", text, a[i].Metric, y.T, y.F, x.F, x.T, p)
		}
	}
	warnings, infos := want.Warnings.AsStrings(text, 0, 0)
	gotWarnings, gotInfos := got.Warnings.AsStrings(text, 0, 0)
	require.ElementsMatch(t, append(warnings, infos...), append(gotWarnings, gotInfos...), "%s\n%s", text, p)
}

// matrix returns the series of an answer in the order of their labels.
func matrix(r *promql.Result) promql.Matrix {
	var out promql.Matrix
	switch v := r.Value.(type) {
	case promql.Matrix:
		out = slices.Clone(v)
	case promql.Vector:
		for _, s := range v {
			out = append(out, promql.Series{Metric: s.Metric, Floats: []promql.FPoint{{T: s.T, F: s.F}}})
		}
	case promql.Scalar:
		out = promql.Matrix{{Floats: []promql.FPoint{{T: v.T, F: v.V}}}}
	}
	slices.SortFunc(out, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return out
}

// same reports whether floats are equal to the bit, or as close as sums in another order. All NaNs
// are equal.
func same(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return math.Float64bits(a) == math.Float64bits(b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) && a != 0 && b != 0
}
