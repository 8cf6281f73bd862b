package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, text string) parser.Expr {
	t.Helper()
	e, err := parser.NewParser(ParserOptions()).ParseExpr(text)
	require.NoError(t, err)
	return e
}

func TestCountSteps(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for _, tc := range []struct {
		text  string
		steps int // 0: instant
		want  stepCount
	}{
		{"vector(1)", 0, stepCount{most: 1}},
		{"vector(1)", 100, stepCount{most: 100}},
		{"sum_over_time(vector(1)[10m:1m])", 0, stepCount{steps: 11, held: 11, most: 11}},
		{"sum_over_time(vector(1)[10m:])", 0, stepCount{steps: 11, held: 11, most: 11}},
		{"sum_over_time(x[10m:1m])", 61, stepCount{steps: 71, held: 61 * 11, most: 71}}, // at steps of a minute
		{"sum_over_time(x[10m:1m]) + sum_over_time(x[10m:1m])", 0, stepCount{steps: 22, held: 22, most: 11}},
		{"max_over_time(max_over_time(x[10m:1m])[1h:1m])", 0, stepCount{steps: 61 + 71, held: 61 + 61*11, most: 71}},
		{"sum_over_time(x[10m:1m] @ 100)", 61, stepCount{steps: 11, held: 11, most: 61}}, // once
		{"sum_over_time(vector(1)[100y:1ms])", 0, stepCount{steps: 3153600000001, held: 3153600000001, most: 3153600000001}},
	} {
		s := &parser.EvalStmt{Start: start, End: start, Expr: parsed(t, tc.text)}
		if tc.steps > 0 {
			s.Interval = time.Minute
			s.End = start.Add(time.Duration(tc.steps-1) * time.Minute)
		}
		e, err := promql.PreprocessExpr(s.Expr, s.Start, s.End, s.Interval)
		require.NoError(t, err)
		s.Expr = e
		got := countSteps(s)
		got.copied = nil
		require.Equal(t, tc.want, got, tc.text)
	}
	deep := "x"
	for range 30 {
		deep = "max_over_time(" + deep + "[100y:1ms])"
	}
	s := &parser.EvalStmt{Start: start, End: start, Expr: parsed(t, deep)}
	require.Equal(t, int64(math.MaxInt64), countSteps(s).held)
}

// TestCopies: what has one value at all steps is copied to each for every series of its selectors,
// unless all of these become one.
func TestCopies(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for text, want := range map[string]map[string]int64{
		"x":                                 {},
		"x @ 5":                             {"x": 100},
		"sum by (a) (x @ 5) + y":            {"x": 100},
		"sum(x @ 5) + count(y @ 5)":         {},
		"topk(5, x @ 5)":                    {},
		"topk(5000, x @ 5)":                 {"x": 100},
		"count_values(\"v\", x @ 5)":        {"x": 100},
		"sum_over_time((x @ 5)[10m:1s])":    {"x": 6541},
		"sum_over_time((x @ 5)[1m:1s] @ 7)": {"x": 100 + 61},
	} {
		s := &parser.EvalStmt{Start: start, End: start.Add(99 * time.Minute), Interval: time.Minute, Expr: parsed(t, text)}
		e, err := promql.PreprocessExpr(s.Expr, s.Start, s.End, s.Interval)
		require.NoError(t, err)
		s.Expr = e
		got := map[string]int64{}
		for m, times := range countSteps(s).copied {
			got[m.Value] = times
		}
		require.Equal(t, want, got, text)
	}
}

// randomLabels makes an expression of label functions, joins and unions around n selectors or so.
func randomLabels(r *rand.Rand, depth int) string {
	name := func() string { return string(rune('a' + r.IntN(4))) }
	if depth == 0 {
		return "m"
	}
	in := randomLabels(r, depth-1)
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf(`label_replace(%s, "%s", "<$1-$2$1>", "%s", "(.)(.*)")`, in, name(), name())
	case 1:
		return fmt.Sprintf(`(%s) * on(id) group_left(%s, %s) %s`, in, name(), name(), randomLabels(r, depth-1))
	case 2:
		return fmt.Sprintf(`(%s or %s)`, in, randomLabels(r, depth-1))
	case 3:
		return fmt.Sprintf(`sum by (id, %s, %s) (-(%s))`, name(), name(), in)
	case 4:
		return fmt.Sprintf(`last_over_time((%s)[1m:1m])`, in)
	default:
		return fmt.Sprintf(`label_join(%s, "%s", "--", "%s", "%s", "%s")`, in, name(), name(), name(), name())
	}
}

// TestLabelsGrowNoMoreThanSaid evaluates random expressions of whatever makes labels, and compares
// the labels of the results with what was said of them.
func TestLabelsGrowNoMoreThanSaid(t *testing.T) {
	storage := promqltest.LoadedStorage(t, `load 1m
  m{id="1", a="x", b="yy", c="zzzzz"} 1 1 1
  m{id="2", a="xxx", d="wwwwwwwwwwwww"} 1 1 1
`)
	const longest = 13
	eng := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Hour, Parser: parser.NewParser(ParserOptions())})
	r := rand.New(rand.NewPCG(1, 2))
	grown := 0
	for range 3000 {
		text := randomLabels(r, 1+r.IntN(4))
		q, err := eng.NewInstantQuery(t.Context(), storage, nil, text, time.Unix(60, 0))
		require.NoError(t, err)
		said := growthOf(parsed(t, text)).Bytes(1, longest, 1) / 2
		res := q.Exec(t.Context())
		if res.Err != nil { // such as several matches
			q.Close()
			continue
		}
		v, err := res.Vector()
		require.NoError(t, err)
		for _, s := range v {
			stored := map[string]bool{"x": true, "yy": true, "zzzzz": true, "xxx": true, "wwwwwwwwwwwww": true, "1": true, "2": true, "m": true}
			var set int64
			s.Metric.Range(func(l labels.Label) {
				if !stored[l.Value] {
					set += int64(len(l.Value))
				}
			})
			require.LessOrEqual(t, set, said, "%s of %s", s.Metric, text)
			if set > 0 {
				grown++
			}
		}
		q.Close()
	}
	require.Greater(t, grown, 1000)
}

func TestLabelsThatGrowExponentially(t *testing.T) {
	text := `vector(1)`
	text = `label_replace(` + text + `, "a", "` + strings.Repeat("x", 100) + `", "", "")`
	for range 900 {
		text = `label_join(` + text + `, "a", "", "a", "a")`
	}
	require.Equal(t, int64(math.MaxInt64), growthOf(parsed(t, text)).Bytes(1, 0, 1))
	require.Zero(t, growthOf(parsed(t, `sum by (a) (rate(x[5m])) / on(b) group_left y`)).Bytes(1e6, 1e6, 1e6), "what sets no labels adds none")
}
