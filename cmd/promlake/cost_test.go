package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// runCost returns what `promlake cost` prints, and its exit code.
func runCost(t *testing.T, args ...string) (out, stderr string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"cost"}, args...), flags.Streams{Out: &o, Err: &e})
	return o.String(), e.String(), code
}

func TestCostPrintsATable(t *testing.T) {
	out, stderr, code := runCost(t, "--series", "1e6", "--scrape", "15s", "--retention", "90d", "--samples-per-send", "2000", "--queries-per-day", "1e3")
	require.Equal(t, 0, code, stderr)
	for _, want := range []string{
		"1.0M series, a sample every 15s, kept for 90 days, 172.8G samples a month; 1000 queries a day", "Mode buffered through http-api, 2000 samples a request, list prices of us-east-1",
		"COMPONENT ", "queue ", "storage ", "total ", "per million samples ", "mode direct ", "Amazon Managed Prometheus ", "Set max_samples_per_send: 10000",
		"(--write-through function-url): it saves $",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "samples ÷ samples per send")
	out, _, _ = runCost(t, "--lines")
	require.Contains(t, out, "ingest function, invocations: samples ÷ samples per send")
	require.Contains(t, out, "HTTP API, requests: ")
	out, stderr, code = runCost(t, "--lines", "--write-through", "function-url", "--system-log-level", "info")
	require.Equal(t, 0, code, stderr)
	require.NotContains(t, out, "HTTP API, requests: ", "of writes")
	require.Contains(t, out, "queries, requests: ")
	require.Contains(t, out, "logs and alarms, Lambda's lines: ")
}

func TestCostPrintsJSON(t *testing.T) {
	out, stderr, code := runCost(t, "--json", "--mode", "direct", "--region", "eu-central-1")
	require.Equal(t, 0, code, stderr)
	var r struct {
		Region     string             `json:"region"`
		Dollars    float64            `json:"dollars_per_month"`
		Components map[string]float64 `json:"components"`
		AMP        float64            `json:"amazon_managed_prometheus_dollars_per_month"`
		Lines      []struct{ Formula string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	var sum float64
	for _, d := range r.Components {
		sum += d
	}
	require.Equal(t, "eu-central-1", r.Region)
	require.InDelta(t, r.Dollars, sum, 1e-6)
	require.Greater(t, r.AMP, r.Dollars)
	require.NotEmpty(t, r.Lines)
}

func TestCostErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"no number", []string{"--series", "many"}, "--series: ", 2},
		{"fewer than no series", []string{"--series=-1"}, "series: want 0 to 1e+10, got -1", 1},
		{"not a number", []string{"--series=NaN"}, "series: want 0 to 1e+10, got NaN", 1},
		{"no time between scrapes", []string{"--scrape", "0s"}, "scrape: want 1s to 24h0m0s, got 0s", 1},
		{"no period", []string{"--retention", "long"}, `period "long": want one such as 90m, 36h or 30d`, 2},
		{"unknown mode", []string{"--mode", "fast"}, `--mode must be one of "buffered","direct","grouped" but got "fast"`, 2},
		{"no URL", []string{"--mode", "grouped", "--write-through", "function-url"}, "write-through: want http-api in mode grouped", 1},
		{"unknown region", []string{"--region", "mars-1"}, `region "mars-1": no prices for it, only for eu-central-1, us-east-1`, 1},
		{"too much memory", []string{"--memory.query", "20000"}, "memory of query: want 128 to 10240 MiB, got 20000", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, stderr, code := runCost(t, tc.args...)
			require.Equal(t, tc.code, code)
			require.Contains(t, stderr, tc.want)
		})
	}
}
