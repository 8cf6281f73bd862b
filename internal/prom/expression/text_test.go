package expression_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/expression"
)

// TestParsedBytes holds the estimate against the heap: it is never too low, and for what dashboards
// and rules have not more than some times too high.
func TestParsedBytes(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	repeat := func(n int, text, between string) string {
		return strings.TrimSuffix(strings.Repeat(text+between, n), between)
	}
	for name, tc := range map[string]struct {
		text  string
		times float64 // by which the estimate may be too high
	}{
		"names":          {repeat(560, "m1234", "+"), 3},
		"short names":    {repeat(900, "a", "+"), 3},
		"numbers":        {repeat(900, "1", "+"), 5},
		"rates":          {repeat(300, `sum by (job, instance) (rate(http_requests_total{job="api",code="500"}[5m]))`, "/"), 8},
		"matchers":       {repeat(300, `x{a="1",b="2",c!="3"}`, " or "), 8},
		"patterns":       {repeat(300, `{a=~"x.*y"}`, " or "), 8},
		"repetitions":    {repeat(30, `{a=~"(x[a-z]y){200}"}`, " or "), 10},
		"alternatives":   {`x{a=~"` + repeat(3000, "instance-[0-9]+", "|") + `"}`, 10},
		"classes":        {`{a=~"` + repeat(100, `\\p{L}`, "") + `"}`, 10},
		"groups":         {"sum by (" + repeat(3000, "a", ",") + ") (x)", 60},
		"brackets":       {repeat(900, "(", "") + "x" + repeat(900, ")", ""), 60},
		"unary":          {repeat(900, "-", "") + "x", 60},
		"subqueries":     {repeat(400, "max_over_time(", "") + "x" + repeat(400, "[1h:])", ""), 60},
		"calls":          {repeat(900, "abs(", "") + "x" + repeat(900, ")", ""), 8},
		"offsets":        {repeat(500, "x offset 5m", "+"), 8},
		"empty matchers": {repeat(500, "x{}", "+"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			const copies = 8
			all := make([]parser.Expr, copies)
			heap := func() int64 {
				var s runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&s)
				return int64(s.HeapAlloc)
			}
			before := heap()
			for i := range all {
				var err error
				all[i], err = p.ParseExpr(tc.text)
				require.NoError(t, err)
			}
			real := (heap() - before) / copies
			runtime.KeepAlive(all)
			got := expression.ParsedBytes(tc.text)
			t.Logf("%d bytes of text, %d of heap, estimate %d", len(tc.text), real, got)
			require.GreaterOrEqual(t, float64(got), 0.95*float64(real))
			require.LessOrEqual(t, float64(got), tc.times*float64(max(real, 1)))
		})
	}
}

func TestTextOf(t *testing.T) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr("sum( up )by(job)")
	require.NoError(t, err)
	require.Equal(t, "sum by (job) (up)", expression.TextOf(e).String())
}
