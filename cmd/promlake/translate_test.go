package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// TestTranslateCommand: the statement of the documentation is what the command prints, in at most
// 600 characters, and what it leaves to promql() is named.
func TestTranslateCommand(t *testing.T) {
	translated := func(args ...string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"translate"}, args...), flags.Streams{Out: &stdout, Err: &stderr})
		return stdout.String(), stderr.String(), code
	}
	out, notes, code := translated(`sum by (mode) (rate(node_cpu_seconds_total{job="node"}[5m])) / 2`, "--start=2026-11-28T08:00:00Z", "--end=2026-11-28T09:00:00Z", "--step=1m")
	require.Zero(t, code)
	require.Empty(t, notes)
	require.LessOrEqual(t, len(strings.TrimRight(out, ";\n")), 600)
	page, err := os.ReadFile("../../docs/sql.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```sql\n"+out+"```\n")

	out, notes, code = translated(`count_values("v", up)`, "--time=2026-11-28T09:00:00Z")
	require.Zero(t, code)
	require.Equal(t, "FROM promql('count_values(\"v\", up)', '2026-11-28 09:00:00', '2026-11-28 09:00:00', '1ms');\n", out)
	require.Equal(t, "left to promql(): count_values(\"v\", up): count_values\n", notes)

	_, notes, code = translated("sum(")
	require.NotZero(t, code)
	require.Contains(t, notes, "parse error")
}
