package sql

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSQLSessions: tenants whose statements alternate and run at once, and fail or are cancelled in
// between, each read their own data in databases that serve many statements.
func TestSQLSessions(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	tenants := []string{"team-a", "team-b"}
	for i, name := range tenants {
		l.Write(name, []segment.Row{{Labels: laketest.Metric("up", "tenant", name), Floats: []segment.Float{{T: laketest.Now().UnixMilli() - minute, V: float64(i)}, {T: laketest.Now().UnixMilli(), V: float64(i + 10)}}}})
	}
	ask := func(ctx context.Context, text string) (string, error) {
		var out laketest.Result
		err := l.SQL(ctx, query.Statement{Text: text, Format: "csv"}, &out)
		return out.String(), err
	}
	var all sync.WaitGroup
	for i, name := range tenants {
		ctx := tenant.With(t.Context(), name)
		for range 2 {
			all.Go(func() {
				for round := range 4 {
					for text, want := range map[string]string{
						"SELECT labels['tenant'] AS t, value FROM samples ORDER BY ts":                                                                                                       fmt.Sprintf("t,value\n%s,%d\n%s,%d\n", name, i, name, i+10),
						"SELECT tenant, count(*) AS n FROM promlake_metric('up', NULL, NULL) GROUP BY ALL":                                                                                   "tenant,n\n" + name + ",2\n",
						"SELECT labels['tenant'] AS t, prom_count_over_time(ts, value, make_timestamptz(1699990000000000), make_timestamptz(1700000000000000)) AS n FROM samples GROUP BY 1": "t,n\n" + name + ",2\n",
						"SELECT labels['tenant'] AS t FROM promql('up', now(), now(), INTERVAL 1 MINUTE) WHERE false":                                                                        "t\n",
					} {
						got, err := ask(ctx, text)
						if err != nil || got != want {
							t.Errorf("%s: %q, %v; want %q", text, got, err, want)
						}
					}
					if _, err := ask(ctx, "SELECT labels['tenant']::INTEGER FROM samples"); err == nil {
						t.Error("a label is no number")
					}
					gone, cancel := context.WithCancel(ctx)
					if round%2 == 0 {
						cancel()
					} else {
						all.Go(cancel)
					}
					_, _ = ask(gone, "SELECT count(*) FROM samples a, samples b, range(1000000)")
					cancel()
				}
			})
		}
	}
	all.Wait()
	require.NoError(t, l.Close())
	_, err := ask(tenant.With(t.Context(), "team-a"), "SELECT 1")
	require.NoError(t, err, "a database of its own, closed at once")
}
