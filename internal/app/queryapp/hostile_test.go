package queryapp_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
)

// TestHostileQueries asks what used to end the process, or to take all of its memory. Each is
// answered with the flag of the limit, and counted.
func TestHostileQueries(t *testing.T) {
	doubled := `label_replace(x, "a", "xx", "", "")`
	for range 40 {
		doubled = `label_join(` + doubled + `, "a", "", "a", "a")`
	}
	base := serve(t, settings.Default[queryapp.Settings]())
	for _, tc := range []struct {
		path, query, flag string
		code              int
	}{
		{"query?", `sum_over_time(vector(1)[100y:1ms])`, "--query.max-subquery-steps", 422},
		{"query_range?start=1&end=11000&step=1&", `sum_over_time(vector(1)[30d:1ms])`, "--query.max-subquery-steps", 422},
		{"explain?", `sum_over_time(vector(1)[30d:1ms])`, "--query.max-subquery-steps", 422},
		{"query?", doubled, "--query.max-memory", 422},
		{"query?", strings.Repeat("ln(", 4001) + "up" + strings.Repeat(")", 4001), "--query.max-expression-depth", 400},
		{"query?", "1" + strings.Repeat("-1", 10_000), "--query.max-expression-depth", 400},
		{"parse_query?", strings.Repeat(" ", 300_000) + "1", "--query.max-expression-bytes", 400},
	} {
		code, body := get(t, base+"/api/v1/"+tc.path+"query="+url.QueryEscape(tc.query))
		require.Equal(t, tc.code, code, body)
		require.Contains(t, body, tc.flag)
	}
	// What dashboards send: "All" of 5,000 instances, and sums of 1,500 operands.
	instances := `count(x{job=~"` + strings.Repeat(`10\\.1\\.2\\.3:9100|`, 5_000) + `a"}) == 1`
	for _, path := range []string{"query", "query_range", "explain"} {
		for _, query := range []string{instances, "sum(rate(x[5m]))" + strings.Repeat(" + sum(rate(x[5m]))", 1_500), strings.Repeat("-(", 2_000) + "x" + strings.Repeat(")", 2_000)} {
			resp, err := http.PostForm(base+"/api/v1/"+path, url.Values{"query": {query}, "start": {"1"}, "end": {"2"}, "step": {"1"}})
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode, "%s %.80s", path, query)
		}
	}
	code, body := get(t, base+"/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `promlake_query_limited_total{flag="--query.max-subquery-steps"} 3`)
	require.Contains(t, body, `promlake_query_limited_total{flag="--query.max-memory"} 1`)
	require.Contains(t, body, `promlake_query_expressions_refused_total{flag="--query.max-expression-depth"} 2`)
	require.Contains(t, body, `promlake_query_expressions_refused_total{flag="--query.max-expression-bytes"} 1`)
}
