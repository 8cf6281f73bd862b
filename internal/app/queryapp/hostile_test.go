package queryapp_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
)

// TestHostileQueries asks what used to end the process, or to take all of its memory. Each is
// answered with the flag of the limit, and counted.
func TestHostileQueries(t *testing.T) {
	doubled := `label_replace(x, "a", "xx", "", "")`
	for range 40 {
		doubled = `label_join(` + doubled + `, "a", "", "a", "a")`
	}
	base := serve(t, queryapp.DefaultSettings())
	for _, tc := range []struct {
		path, query, flag string
		code              int
	}{
		{"query?", `sum_over_time(vector(1)[100y:1ms])`, "--query.max-subquery-steps", 422},
		{"query_range?start=1&end=11000&step=1&", `sum_over_time(vector(1)[30d:1ms])`, "--query.max-subquery-steps", 422},
		{"explain?", `sum_over_time(vector(1)[30d:1ms])`, "--query.max-subquery-steps", 422},
		{"query?", doubled, "--query.max-memory", 422},
		{"query?", strings.Repeat("ln(", 1001) + "up" + strings.Repeat(")", 1001), "--query.max-expression-depth", 400},
		{"query?", "1" + strings.Repeat("-1", 10_000), "--query.max-expression-depth", 400},
		{"parse_query?", strings.Repeat(" ", 70_000) + "1", "--query.max-expression-bytes", 400},
	} {
		code, body := get(t, base+"/api/v1/"+tc.path+"query="+url.QueryEscape(tc.query))
		require.Equal(t, tc.code, code, body)
		require.Contains(t, body, tc.flag)
	}
	code, body := get(t, base+"/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `promlake_query_limited_total{flag="--query.max-subquery-steps"} 3`)
	require.Contains(t, body, `promlake_query_limited_total{flag="--query.max-memory"} 1`)
	require.Contains(t, body, `promlake_query_expressions_refused_total{flag="--query.max-expression-depth"} 2`)
	require.Contains(t, body, `promlake_query_expressions_refused_total{flag="--query.max-expression-bytes"} 1`)
}
