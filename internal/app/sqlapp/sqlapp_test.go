package sqlapp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/sqlapp"
)

func TestRun(t *testing.T) {
	for format, want := range map[string]string{
		"csv":  "a,v\n1,\"[2.0, 4.0]\"\n",
		"json": `{"a":1,"v":[2.0,4.0]}` + "\n",
	} {
		var out strings.Builder
		s := sqlapp.Settings{Format: format, MemoryLimitBytes: 1 << 28}
		require.NoError(t, sqlapp.Run(t.Context(), s, "SELECT 1 AS a, prom_binary('+', [1.0::DOUBLE, 2], [1.0::DOUBLE, 2]) AS v;", &out))
		require.Equal(t, want, out.String())
	}
}

func TestRunErrors(t *testing.T) {
	s := sqlapp.Settings{Format: "csv", MemoryLimitBytes: 1 << 28}
	require.ErrorContains(t, sqlapp.Run(t.Context(), s, "SELECT FROM", &strings.Builder{}), "syntax error")
	require.ErrorContains(t, sqlapp.Run(t.Context(), s, "SELECT * FROM '/nowhere.parquet'", &strings.Builder{}), "No files found")
	for _, call := range []string{"prom_sum(v ORDER BY v)", "prom_sum(DISTINCT v)", "prom_sum(v) OVER (PARTITION BY a)"} {
		sql := "WITH x AS (SELECT " + call + " AS v FROM (SELECT 1 AS a, [1.0::DOUBLE] AS v) GROUP BY a, v) SELECT * FROM x"
		require.ErrorContains(t, sqlapp.Run(t.Context(), s, sql, &strings.Builder{}), `the function "prom_sum" is not available with`, call)
	}
	s.Format = "xml"
	require.ErrorContains(t, sqlapp.Run(t.Context(), s, "SELECT 1", &strings.Builder{}), "unknown format")
}
