package usage_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/usage"
)

func parse(t *testing.T, text string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	require.NoError(t, err)
	return expr
}

func TestQuery(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := usage.New(1<<20, nil, func() time.Time { return now })
	ask := func(tenant string, texts ...string) {
		for _, text := range texts {
			now = now.Add(time.Second)
			c.Query(tenant, parse(t, text))
		}
	}
	ask("a",
		`up`,
		`rate(up[5m]) / up`, // a query counts once
		`{__name__="up",job="x"}`,
		`sum({__name__=~"up|node_load1"})`,
		`max_over_time(deriv(node_load1[5m])[1h:])`,
		`{__name__=~"node_.+"}`,
		`{job="x"}`, `{__name__!="up",job="x"}`, `{__name__=~".+"}`, `{__name__=~".*",job="x"}`, `vector(1)`, // these name no metric
	)
	ask("b", `up`)
	r := c.Of("a")
	require.Equal(t, time.Unix(1_000, 0), r.Since)
	require.True(t, r.Complete)
	require.Equal(t, 2, r.Names)
	for name, want := range map[string]usage.Asked{
		"up":         {Queries: 4, Last: time.Unix(1_004, 0)},
		"node_load1": {Queries: 3, Last: time.Unix(1_006, 0)},
		"node_cpu":   {Queries: 1, Last: time.Unix(1_006, 0)},
		"other":      {},
	} {
		require.Equal(t, want, r.Asked(name), name)
	}
	b, none := c.Of("b"), c.Of("c")
	require.Equal(t, uint64(1), b.Asked("up").Queries)
	require.Zero(t, none.Asked("up"))
	require.True(t, none.Complete)
}

// TestLimit: what is counted stays and goes on counting, what has no room is counted as such.
func TestLimit(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := usage.New(1_000, reg, time.Now)
	for range 2 {
		for i := range 20 {
			c.Query("a", parse(t, fmt.Sprintf("metric_%02d", i)))
		}
	}
	c.Query("a", parse(t, strings.Repeat("x", 600)))
	c.Query("late", parse(t, "up"))
	r, late := c.Of("a"), c.Of("late")
	require.False(t, r.Complete)
	require.False(t, late.Complete)
	require.Equal(t, uint64(2), r.Asked("metric_00").Queries)
	require.Zero(t, r.Asked("metric_19"))
	require.LessOrEqual(t, r.Used, r.Limit)
	require.Positive(t, r.Names)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP promlake_query_uncounted_names_total Names of metrics in queries that were not counted, because --query.usage-bytes was reached or the name exceeds 512 bytes.
# TYPE promlake_query_uncounted_names_total counter
promlake_query_uncounted_names_total %d
`, 2*(20-r.Names)+2))))

	off := usage.New(0, nil, time.Now)
	off.Query("a", parse(t, "up"))
	none := off.Of("a")
	require.False(t, none.Complete)
	require.Zero(t, none.Asked("up"))
}

func TestConcurrent(t *testing.T) {
	c := usage.New(1<<20, nil, time.Now)
	expr := parse(t, `up + {__name__=~"node_.+"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c.Query("a", expr)
				r := c.Of("a")
				r.Asked("up")
			}
		})
	}
	wg.Wait()
	r := c.Of("a")
	require.Equal(t, uint64(800), r.Asked("up").Queries)
	require.Equal(t, uint64(800), r.Asked("node_load1").Queries)
}

// TestPatternsTakeWhatTheyCompileTo: a pattern of a few bytes that is large once it is compiled
// counts as large.
func TestPatternsTakeWhatTheyCompileTo(t *testing.T) {
	c := usage.New(1<<20, nil, time.Now)
	c.Query("a", parse(t, `{__name__=~"node_(cpu|load).+"}`))
	small := c.Of("a")
	require.True(t, small.Complete)
	require.Less(t, small.Used, int64(8<<10))
	c.Query("a", parse(t, `{__name__=~"x(abcdefghij){90}y.+"}`))
	large := c.Of("a")
	require.True(t, large.Complete)
	require.Greater(t, large.Used-small.Used, int64(100<<10))
	c.Query("a", parse(t, `{__name__=~"x(abcdefghijabcdefghijabcdefghij){1000}y.+"}`))
	beyond := c.Of("a")
	require.False(t, beyond.Complete)
	require.Equal(t, large.Used, beyond.Used)
}
