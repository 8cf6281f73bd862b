package fuzzpromql

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

func TestClassOf(t *testing.T) {
	for query, want := range map[string]class{
		`rate(m[5m]) / on (g) d`:                     exact,
		`histogram_quantile(0.9, h_bucket)`:          exact,
		`count by (g) (m) + group(m)`:                exact,
		`max(m)`:                                     numeric,
		`floor(sum(m)) > 3`:                          ordered,
		`quantile_over_time(0.5, avg(m)[5m:1m])`:     ordered,
		`label_replace(topk(1, m), "a", "", "", "")`: ordered,
	} {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		require.NoError(t, err)
		require.Equal(t, want, classOf(e), query)
	}
}

func floatsAt(v ...float64) outcome {
	var ps []point
	for i, f := range v {
		ps = append(ps, point{t: int64(i), f: f})
	}
	return outcome{series: map[string][]point{"x": ps}}
}

func TestCompare(t *testing.T) {
	const near1 = 1 + 1e-13
	negative := math.Copysign(0, -1)
	for _, tc := range []struct {
		name      string
		class     class
		got, want outcome
		noise     outcome
		differs   string
		undecided bool
	}{
		{name: "same bits", got: floatsAt(1, math.NaN()), want: floatsAt(1, -math.NaN())},
		{name: "last bit of an exact query", got: floatsAt(near1), want: floatsAt(1), differs: "series x at 0"},
		{name: "sign of zero of an exact query", got: floatsAt(negative), want: floatsAt(0), differs: "series x at 0"},
		{name: "sign of zero of a minimum", class: numeric, got: floatsAt(negative), want: floatsAt(0)},
		{name: "last bit of a minimum", class: numeric, got: floatsAt(near1), want: floatsAt(1), differs: "series x at 0"},
		{name: "last bit of a sum", class: ordered, got: floatsAt(near1), want: floatsAt(1)},
		{name: "more than upstream's noise", class: ordered, got: floatsAt(1, 1.1), want: floatsAt(1, 1), noise: floatsAt(1, 1+1e-9), differs: "series x at 1"},
		{name: "less than upstream's noise", class: ordered, got: floatsAt(1, 1+1e-9), want: floatsAt(1, 1), noise: floatsAt(1, 1+1e-9)},
		{name: "noise elsewhere", class: ordered, got: floatsAt(1, 1+1e-9), want: floatsAt(1, 1), noise: floatsAt(1+1e-9, 1), differs: "series x at 1"},
		{name: "not a number", class: ordered, got: floatsAt(math.NaN()), want: floatsAt(1), noise: floatsAt(1), differs: "series x at 0"},
		{name: "infinite", class: ordered, got: floatsAt(math.Inf(1)), want: floatsAt(1), noise: floatsAt(1), differs: "series x at 0"},
		{name: "a point more", class: ordered, got: floatsAt(1, 1), want: floatsAt(1), noise: floatsAt(1), differs: "2 points, want 1"},
		{name: "upstream is of two minds", class: ordered, got: floatsAt(1, 1), want: floatsAt(1), noise: floatsAt(1, 1, 1), undecided: true},
		{name: "but not of an exact query", got: floatsAt(1, 1), want: floatsAt(1), differs: "2 points, want 1"},
		{name: "no series", got: outcome{}, want: floatsAt(1), differs: "no series x"},
		{name: "extra series", got: floatsAt(1), want: outcome{}, differs: "extra series x"},
		{name: "error", got: outcome{err: "a"}, want: outcome{err: "b"}, differs: `error "a", want "b"`},
		{name: "notes", got: outcome{notes: []string{"a"}}, want: outcome{}, differs: `notes ["a"]`},
		{name: "notes, and upstream agrees with itself", got: outcome{notes: []string{"a"}}, want: outcome{notes: []string{"b"}}, noise: outcome{notes: []string{"b"}}, differs: `notes ["a"], want ["b"]`},
		{name: "notes of which upstream is of two minds", got: outcome{notes: []string{"a"}}, want: outcome{notes: []string{"b"}}, noise: outcome{notes: []string{"a"}}, undecided: true},
		{name: "points and notes", got: outcome{notes: []string{"a"}}, want: floatsAt(1), noise: outcome{notes: []string{"a"}}, differs: "no series x"},
		{name: "order", got: outcome{sorted: []float64{1, 2}}, want: outcome{sorted: []float64{2, 1}}, differs: "sorted values"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := compare(tc.class, tc.got, tc.want, func(int) outcome { return tc.noise })
			require.Equal(t, tc.undecided, v.undecided)
			if tc.differs == "" {
				require.Empty(t, v.difference)
			} else {
				require.Contains(t, v.difference, tc.differs)
			}
		})
	}
}

func TestErrorsOfDuplicatesAreOne(t *testing.T) {
	require.Equal(t, plain(`found duplicate series for the match group {g="1"} on the right hand-side of the operation: [{a="1"}, {a="2"}];many-to-many`),
		plain(`found duplicate series for the match group {g="2"} on the right hand-side of the operation: [{a="2"}, {a="1"}];many-to-many`))
	require.NotEqual(t, plain(`found duplicate series for the match group {} on the left hand-side of the operation: x`),
		plain(`found duplicate series for the match group {} on the right hand-side of the operation: x`))
	require.Equal(t, "other", plain("other"))
}
