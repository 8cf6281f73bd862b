package query_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
)

// pushAll and pushNone decide where queries are evaluated: in SQL what it can, or nothing.
var (
	pushAll  = query.Settings{MinPushedSamples: -1}
	pushNone = query.Settings{MinPushedSamples: math.MaxInt64}
)

// pushedQueries are expressions over the series of pushRows.
var pushedQueries = []string{
	`m1`, `m1 offset 7m`, `m1 @ end()`, `{__name__=~"m[12]",i="1"}`, `rate(m1[5m])`, `sum by (job) (rate(m1[5m]))`, `sum(increase(m2[10m] offset 3m))`,
	`max_over_time(m1{job="a"}[7m])`, `min by (job) (min_over_time(m1[7m]))`, `avg without (i) (m2)`, `count(m1) by (job)`, `stddev(m1)`, `quantile(0.9, m1)`,
	`topk(2, m1)`, `m1 + on (i, job) m2`, `m1 > 500`, `m1 > bool 500`, `m1 and m2`, `m1 or m2`, `m1 unless on (i) m2{job="a"}`, `-m1`, `abs(m1 - 500)`,
	`clamp(m1, 100, 200)`, `changes(m1[10m])`, `resets(m2[10m])`, `irate(m1[3m])`, `delta(m1[5m])`, `deriv(m1[5m])`, `predict_linear(m1[10m], 600)`,
	`quantile_over_time(0.5, m1[10m])`, `count_over_time(m1[10m])`, `last_over_time(m1[10m])`, `present_over_time(m1[10m])`, `stddev_over_time(m1[10m])`,
	`absent(m1{job="nobody"})`, `absent_over_time(m1[5m])`, `scalar(m1{i="1",job="a"})`, `label_replace(m1, "x", "$1", "i", "(.*)")`,
	`max_over_time(rate(m1[5m])[30m:3m])`, `sum(m1) / count(m1)`, `group_left_missing`, `timestamp(m1)`, `hour()`, `vector(1)`,
	`m1 * on (job) group_left sum by (job) (m2)`, `sum(m1 * 2) by (i) > 100`, `histogram_quantile(0.9, sum by (le) (rate(b[5m])))`,
}

// pushRows are series of floats in the time before testNow, with gaps, resets, stale markers and
// values that are not numbers.
func pushRows() []segment.Row { return pushRowsOf(4) }

// pushRowsOf are pushRows with n values of the label i.
func pushRowsOf(n int) []segment.Row {
	rng := rand.New(rand.NewPCG(3, 4))
	now := testNow().UnixMilli()
	var rows []segment.Row
	add := func(name string, pairs ...string) {
		r := segment.Row{Labels: metric(name, pairs...)}
		v := 0.0
		for t := now - 200*minute + rng.Int64N(10_000); t <= now; t += 15_000 + rng.Int64N(200) {
			switch rng.IntN(60) {
			case 0:
				t += rng.Int64N(12 * minute)
			case 1:
				v = 0
			case 2:
				r.Floats = append(r.Floats, segment.Float{T: t, V: math.Float64frombits(value.StaleNaN)})
				continue
			case 3:
				r.Floats = append(r.Floats, segment.Float{T: t, V: pick(rng.IntN(2) == 0, math.NaN(), math.Inf(1))})
				continue
			}
			v += float64(rng.IntN(1000)) / 10
			r.Floats = append(r.Floats, segment.Float{T: t, V: v})
		}
		rows = append(rows, r)
	}
	for i := range n {
		for _, job := range []string{"a", "b", "c"} {
			add("m1", "i", fmt.Sprint(i), "job", job)
			if i != 2 {
				add("m2", "i", fmt.Sprint(i), "job", job)
			}
		}
	}
	for _, le := range []string{"0.1", "1", "+Inf"} {
		add("b", "le", le, "job", "a")
	}
	return rows
}

// asked is a query with its parameters.
type asked struct {
	text       string
	start, end time.Time
	step       time.Duration // 0: at end alone
}

func (a asked) String() string {
	return fmt.Sprintf("%s from %d to %d step %s", a.text, a.start.UnixMilli(), a.end.UnixMilli(), a.step)
}

// exec runs a query of the lake's default tenant.
func (l *lake) exec(ctx context.Context, a asked) *promql.Result {
	l.tb.Helper()
	var q promql.Query
	var err error
	if a.step == 0 {
		q, err = l.Engine().NewInstantQuery(ctx, l, nil, a.text, a.end)
	} else {
		q, err = l.Engine().NewRangeQuery(ctx, l, nil, a.text, a.start, a.end, a.step)
	}
	require.NoError(l.tb, err, a)
	defer q.Close()
	res := q.Exec(ctx)
	require.Equal(l.tb, a.text, q.String())
	stmt := q.Statement().(*parser.EvalStmt)
	require.Equal(l.tb, a.end.UnixMilli(), stmt.End.UnixMilli())
	require.NotContains(l.tb, stmt.String(), "__promlake")
	return &promql.Result{Err: res.Err, Value: copied(res.Value), Warnings: res.Warnings}
}

// copied is a value that outlives its query.
func copied(v parser.Value) parser.Value {
	m, ok := v.(promql.Matrix)
	if !ok {
		return v
	}
	var out promql.Matrix
	for _, s := range m {
		s.Floats = slices.Clone(s.Floats)
		out = append(out, s)
	}
	return out
}

// series returns the content of a result, by labels and time.
func seriesOf(t *testing.T, res *promql.Result) map[string]map[int64]float64 {
	t.Helper()
	out := map[string]map[int64]float64{}
	add := func(name string, points ...promql.FPoint) {
		if out[name] == nil {
			out[name] = map[int64]float64{}
		}
		for _, p := range points {
			if _, twice := out[name][p.T]; twice {
				require.Failf(t, "twice", "%s at %d", name, p.T)
			}
			out[name][p.T] = p.F
		}
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		for _, s := range v {
			add(s.Metric.String(), promql.FPoint{T: s.T, F: s.F})
		}
	case promql.Matrix:
		for _, s := range v {
			if len(s.Floats) > 0 {
				add(s.Metric.String(), s.Floats...)
			}
		}
	case promql.Scalar:
		add("scalar", promql.FPoint{T: v.T, F: v.V})
	}
	return out
}

// same compares two results: what depends on the order of a sum may differ in the last bits.
func same(t *testing.T, want, got *promql.Result, about any) {
	t.Helper()
	if want.Err != nil {
		require.EqualError(t, got.Err, want.Err.Error(), about)
		return
	}
	compare(t, want, got, about, func(v, x float64) bool {
		return math.Float64bits(v) == math.Float64bits(x) || math.Abs(v-x) <= 1e-12*math.Max(math.Abs(v), math.Abs(x)) || math.IsNaN(v) && math.IsNaN(x)
	})
}

// compare requires equal warnings, series and times, and equal values as equal has them. It compares
// hundreds of thousands of points; require's own functions take reflection to each.
func compare(t *testing.T, want, got *promql.Result, about any, equal func(v, x float64) bool) {
	t.Helper()
	require.NoError(t, want.Err, about)
	require.NoError(t, got.Err, about)
	require.ElementsMatch(t, warnings(want), warnings(got), about)
	w, g := seriesOf(t, want), seriesOf(t, got)
	require.Equal(t, slices.Sorted(maps.Keys(w)), slices.Sorted(maps.Keys(g)), about)
	for name, points := range w {
		require.Len(t, g[name], len(points), "%s %s", about, name)
		for at, v := range points {
			if x, ok := g[name][at]; !ok || !equal(v, x) {
				require.Failf(t, "not equal", "%s %s at %d: %x, want %x (%v, %v)", about, name, at, math.Float64bits(x), math.Float64bits(v), x, v)
			}
		}
	}
}

func warnings(res *promql.Result) []string {
	var out []string
	for _, err := range res.Warnings.AsErrors() {
		out = append(out, err.Error())
	}
	return out
}

// ways are the times that tests ask at.
func ways(text string) []asked {
	now := testNow()
	return []asked{
		{text: text, end: now.Add(-time.Minute)},
		{text: text, start: now.Add(-100 * time.Minute), end: now, step: 77 * time.Second},
		{text: text, start: now.Add(-190 * time.Minute), end: now.Add(-10 * time.Minute), step: 15 * time.Minute},
	}
}

// TestPushedAnswers: queries evaluated in SQL have the answers of the engine alone, in every layout
// of the samples, with and without deletions.
func TestPushedAnswers(t *testing.T) {
	rows := pushRows()
	for _, layout := range layouts {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/deleted=%v", layout.name, deleted), func(t *testing.T) {
				store := newDirStore(t)
				plain, pushed := newLake(t, store, pushNone), newLake(t, store, pushAll)
				layout.write(plain, tenant.Default, rows)
				if deleted {
					deleteAll(plain)
				}
				for _, text := range pushedQueries {
					for _, a := range ways(text) {
						same(t, plain.exec(t.Context(), a), pushed.exec(t.Context(), a), a)
					}
				}
				require.Zero(t, plain.counted("promlake_query_pushed_total"))
				require.Greater(t, pushed.counted("promlake_query_subtrees_total"), 2.5*float64(len(pushedQueries)))
			})
		}
	}
}
