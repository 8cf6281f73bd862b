package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRulesTest(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	file("r.yml", "groups: [{name: g, rules: [{record: b, expr: a * 2}]}]")
	tests := file("t.yml", `
rule_files: [r.yml]
tests:
  - name: passes
    input_series: [{series: a, values: 1}]
    promql_expr_test: [{expr: b, eval_time: 0, exp_samples: [{labels: b, value: 2}]}]
  - name: fails
    input_series: [{series: a, values: 2}]
    promql_expr_test: [{expr: b, eval_time: 0, exp_samples: [{labels: b, value: 5}]}]
`)
	report := filepath.Join(dir, "report.xml")
	code, out, errs := command("rules", "test", "--junit", report, tests)
	require.Equal(t, 1, code)
	require.Equal(t, "\n\n", out)
	require.Equal(t, "  FAILED:\n    expr: \"b\", time: 0s,\n        exp: {__name__=\"b\"} 5E+00\n        got: {__name__=\"b\"} 4E+00\n", errs)
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(text), `<testcase name="passes"></testcase><testcase name="fails"><failure>`)

	code, out, errs = command("rules", "test", "--run", "^passes$", tests)
	require.Equal(t, 0, code)
	require.Equal(t, "  SUCCESS\n\n", out)
	require.Empty(t, errs)

	code, _, errs = command("rules", "test", "--run", "(", tests)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "promlake: error: --run: error parsing regexp")
	code, _, errs = command("rules", "test", "--junit", filepath.Join(dir, "no", "r.xml"), tests)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "--junit: open ")
}

func TestRulesReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("r.yml", []byte("groups: [{name: g, rules: [{alert: B, expr: 'sum(up) + 2', for: 1m}]}]"), 0o600))
	store := filled(t)
	args := []string{"rules", "replay", "B", "--rules", "r.yml", "--store", store, "--start", "2026-01-02T03:04:10Z", "--end", "2026-01-02T03:07:10Z"}
	code, out, errs := command(args...)
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `^PENDING SINCE +FIRING AT +RESOLVED AT +VALUE +LABELS\n2026-01-02T03:0\S+Z +2026-01-02T03:0\S+Z +still active +5 +\{alertname="B"\}\n3 evaluations, 1 episodes, 1 of them fired\n$`, out)
	code, out, errs = command(append(args, "--format", "json")...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, `"labels": {
      "alertname": "B"
    },`)
	require.Contains(t, out, `"value": "5"`)
	require.NotContains(t, out, "resolvedAt")
	for flag, want := range map[string]string{"--start": "--start", "--end": "--end", "--as-of": "--as-of"} {
		code, _, errs = command(append(args, flag, "soon")...)
		require.Equal(t, 1, code)
		require.Contains(t, errs, want+` "soon": want now-1h, RFC 3339 or seconds since 1970`)
	}
	code, _, errs = command("rules", "replay", "B", "--start", "0")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "missing flags: --rules")
}

func TestRulesBackfill(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("r.yml", []byte("groups: [{name: g, rules: [{record: up:sum, expr: sum(up)}]}]"), 0o600))
	store := filled(t)
	args := []string{"rules", "backfill", "--rules", "r.yml", "--store", store, "--start", "2026-01-02T03:04:10Z", "--end", "2026-01-02T03:07:10Z"}
	code, out, errs := command(append(args, "--dry-run")...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "to write: samples   3 to 3, by evaluations at some times\n")
	code, out, errs = command(args...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "evaluated        2026-01-02T03:04:10Z to 2026-01-02T03:07:10Z\n")
	require.Contains(t, out, "samples written  3\n")
	code, out, errs = command("query", "--store", store, "--time", "2026-01-02T03:07:10Z", "up:sum")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "  3\n")
	code, out, errs = command(args...)
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "evaluations done before  3\n")
	code, _, errs = command(append(args, "--end", "soon")...)
	require.Equal(t, 1, code)
	require.Contains(t, errs, `--end "soon": want now-1h, RFC 3339 or seconds since 1970`)
}
