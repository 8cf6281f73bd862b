package usage_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

func wanted(t *testing.T, text string) *usage.Wants {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	require.NoError(t, err)
	return usage.Wanted(expr)
}

// clock is a settable time.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.UnixMilli(1_700_000_000_000)} }

func (c *clock) now() time.Time { return c.at }

func (c *clock) after(d time.Duration) { c.at = c.at.Add(d) }

func newCounter(s usage.Settings, store objstore.Store, now func() time.Time) *usage.Counter {
	return usage.New(s, store, nil, slog.New(slog.DiscardHandler), now)
}

func of(t *testing.T, c *usage.Counter, tenant string) usage.Report {
	t.Helper()
	r, err := c.Of(t.Context(), tenant)
	require.NoError(t, err)
	return r
}

func metric(r usage.Report, name string) usage.Asked { return r.Metrics([]string{name})[0] }

func label(r usage.Report, name string) usage.Asked { return r.Labels([]string{name})[0] }

func TestMetrics(t *testing.T) {
	at := newClock()
	c := newCounter(usage.Settings{Bytes: 1 << 20}, memstore.New(memstore.Settings{}), at.now)
	ask := func(tenant string, texts ...string) {
		for _, text := range texts {
			at.after(time.Second)
			c.Query(tenant, wanted(t, text))
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
	r := of(t, c, "a")
	require.Equal(t, int64(1_700_000_000_000), r.Since.UnixMilli())
	for name, want := range map[string]usage.Asked{
		"up":         {Queries: 4, Last: 1_700_000_004_000},
		"node_load1": {Queries: 3, Last: 1_700_000_006_000},
		"node_cpu":   {Queries: 1, Last: 1_700_000_006_000},
		"other":      {},
	} {
		require.Equal(t, want, metric(r, name), name)
	}
	require.Equal(t, uint64(1), metric(of(t, c, "b"), "up").Queries)
	require.Zero(t, metric(of(t, c, "c"), "up"))
}

func TestLabels(t *testing.T) {
	for text, want := range map[string]string{
		`up{job="x",instance!~"y"}`:                                   "instance job",
		`{__name__=~"up|down"}`:                                       "",
		`sum by (job, __name__) (up)`:                                 "job",
		`sum without (job) (up)`:                                      "",
		`a / on (job) group_left (team) b`:                            "job team",
		`a / ignoring (job) group_right (team) b`:                     "team",
		`label_replace(up, "to", "$1", "from", "(.*)")`:               "from",
		`label_replace(up, "to", "$1", ("from"), "(.*)")`:             "from",
		`label_join(up, "to", "-", "one", "two")`:                     "one two",
		`label_join(up, "to", "-")`:                                   "",
		`sort_by_label(up, "job", "zone")`:                            "job zone",
		`count_values("value", up)`:                                   "",
		`histogram_quantile(0.9, sum by (job) (rate(x_bucket[5m])))`:  "job le",
		`max_over_time(sum by (job) (rate(x{code=~"5.."}[5m]))[1h:])`: "code job",
		`topk by (zone) (3, up)`:                                      "zone",
	} {
		c := newCounter(usage.Settings{Bytes: 1 << 20}, memstore.New(memstore.Settings{}), time.Now)
		p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
		expr, err := p.ParseExpr(text)
		require.NoError(t, err, text)
		c.Query("a", usage.Wanted(expr))
		r := of(t, c, "a")
		var got []string
		for _, name := range strings.Fields("__name__ code from instance job le one team to two value zone") {
			if a := label(r, name); a.Queries > 0 {
				require.Equal(t, uint64(1), a.Queries)
				got = append(got, name)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
	c := newCounter(usage.Settings{Bytes: 1 << 20}, memstore.New(memstore.Settings{}), time.Now)
	c.LabelValues("a", "job")
	c.LabelValues("a", "__name__")
	r := of(t, c, "a")
	require.Equal(t, uint64(1), label(r, "job").Queries)
	require.Zero(t, label(r, "__name__"))
}

// TestLimit: what is counted stays and goes on counting. What has no room is counted as such, and
// the report says since when everything is counted.
func TestLimit(t *testing.T) {
	at, reg := newClock(), prometheus.NewRegistry()
	c := usage.New(usage.Settings{Bytes: 1_000}, memstore.New(memstore.Settings{}), reg, slog.New(slog.DiscardHandler), at.now)
	for range 2 {
		for i := range 10 {
			at.after(time.Second)
			c.Query("a", wanted(t, fmt.Sprintf("metric_%d", i)))
		}
	}
	r := of(t, c, "a")
	require.Equal(t, at.at, r.Since)
	require.Equal(t, uint64(2), metric(r, "metric_0").Queries)
	require.Zero(t, metric(r, "metric_9"))
	require.LessOrEqual(t, r.Used, r.Limit)
	at.after(time.Second)
	c.Query("late-tenant", wanted(t, "up"))
	late := of(t, c, "late-tenant")
	require.Equal(t, at.at, late.Since)
	require.Zero(t, metric(late, "up"))
	require.Less(t, of(t, c, "a").Since, at.at, "the other tenant has lost nothing since")
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP promlake_query_uncounted_names_total Names of metrics and labels in queries that were not counted, because --query.usage-bytes was reached, the name exceeds 4096 bytes, or the pattern is too large.
# TYPE promlake_query_uncounted_names_total counter
promlake_query_uncounted_names_total 14
`), "promlake_query_uncounted_names_total"))

	off := newCounter(usage.Settings{}, memstore.New(memstore.Settings{}), at.now)
	off.Query("a", wanted(t, "up"))
	off.LabelValues("a", "job")
	at.after(time.Hour)
	none := of(t, off, "a")
	require.Equal(t, at.at, none.Since, "nothing is counted")
	require.Zero(t, metric(none, "up"))
}

// TestWhatIsTooLarge: long names, and short patterns that are large once they are compiled.
func TestWhatIsTooLarge(t *testing.T) {
	for text, counted := range map[string]bool{
		strings.Repeat("x", 4096):                                  true,
		strings.Repeat("x", 4097):                                  false,
		`{__name__=~"node_(cpu|load).+"}`:                          true,
		`{__name__=~"x(abcdefghij){90}y.+"}`:                       true,
		`{__name__=~"x(abcdefghijabcd){1000}y.+"}`:                 true,
		`{__name__=~"x(abcdefghijabcdefghijabcdefghij){1000}y.+"}`: false,
	} {
		at := newClock()
		c := newCounter(usage.Settings{Bytes: 1 << 20}, memstore.New(memstore.Settings{}), at.now)
		at.after(time.Second)
		c.Query("a", wanted(t, text))
		require.Equal(t, counted, of(t, c, "a").Since.Before(at.at), "%.60s", text)
	}
}

func TestConcurrent(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	put(t, store, "v1/a/manifest.json", "{}")
	c := newCounter(usage.Settings{Bytes: 1 << 20, Interval: time.Minute}, store, time.Now)
	expr := wanted(t, `up + {__name__=~"node_.+"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				c.Query("a", expr)
				if i%10 == 0 {
					c.Save(context.Background())
				}
				if _, err := c.Of(context.Background(), "a"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r := of(t, c, "a")
	require.Equal(t, uint64(800), metric(r, "up").Queries)
	require.Equal(t, uint64(800), metric(r, "node_load1").Queries)
}
