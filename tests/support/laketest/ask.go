package laketest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// Query is a query with its parameters.
type Query struct {
	Text       string
	Start, End time.Time
	Step       time.Duration // 0: at end alone
}

// String implements fmt.Stringer.
func (a Query) String() string {
	return fmt.Sprintf("%s from %d to %d step %s", a.Text, a.Start.UnixMilli(), a.End.UnixMilli(), a.Step)
}

// Exec runs a query of the lake's default tenant.
func (l *Lake) Exec(ctx context.Context, a Query) *promql.Result {
	l.TB.Helper()
	var q promql.Query
	var err error
	if a.Step == 0 {
		q, err = l.Engine().NewInstantQuery(ctx, l, nil, a.Text, a.End)
	} else {
		q, err = l.Engine().NewRangeQuery(ctx, l, nil, a.Text, a.Start, a.End, a.Step)
	}
	require.NoError(l.TB, err, a)
	defer q.Close()
	res := q.Exec(ctx)
	require.Equal(l.TB, a.Text, q.String())
	stmt := q.Statement().(*parser.EvalStmt)
	require.Equal(l.TB, a.End.UnixMilli(), stmt.End.UnixMilli())
	require.NotContains(l.TB, stmt.String(), "__promlake")
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
		s.Floats, s.Histograms = slices.Clone(s.Floats), slices.Clone(s.Histograms)
		out = append(out, s)
	}
	return out
}

// SeriesOf returns the content of a result, by labels and time.
func SeriesOf(t *testing.T, res *promql.Result) map[string]map[int64]float64 {
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

// Same compares two results: what depends on the order of a sum may differ in the last bits.
func Same(t *testing.T, want, got *promql.Result, about any) {
	t.Helper()
	if want.Err != nil {
		require.EqualError(t, got.Err, want.Err.Error(), about)
		return
	}
	Compare(t, want, got, about, func(v, x float64) bool {
		return math.Float64bits(v) == math.Float64bits(x) || math.Abs(v-x) <= 1e-12*math.Max(math.Abs(v), math.Abs(x)) || math.IsNaN(v) && math.IsNaN(x)
	})
}

// Compare requires equal warnings, series and times, and equal values as equal has them. It
// compares hundreds of thousands of points; require's own functions take reflection to each.
func Compare(t *testing.T, want, got *promql.Result, about any, equal func(v, x float64) bool) {
	t.Helper()
	require.NoError(t, want.Err, about)
	require.NoError(t, got.Err, about)
	require.ElementsMatch(t, warnings(want), warnings(got), about)
	w, g := SeriesOf(t, want), SeriesOf(t, got)
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

// Ways are the times that tests ask at.
func Ways(text string) []Query {
	now := Now()
	return []Query{
		{Text: text, End: now.Add(-time.Minute)},
		{Text: text, Start: now.Add(-100 * time.Minute), End: now, Step: 77 * time.Second},
		{Text: text, Start: now.Add(-190 * time.Minute), End: now.Add(-10 * time.Minute), Step: 15 * time.Minute},
	}
}

// Identical compares two results bit for bit.
func Identical(t *testing.T, want, got *promql.Result, about any) {
	t.Helper()
	Compare(t, want, got, about, func(v, x float64) bool { return math.Float64bits(v) == math.Float64bits(x) })
}

// Soak reports whether tests take as long as make soak has time for.
var Soak = os.Getenv("PROMLAKE_SOAK") != ""

// Rounds is the number of rounds of a random test: n, and ten times as many in make soak.
func Rounds(n int) int {
	if Soak {
		n *= 10
	}
	return n
}
