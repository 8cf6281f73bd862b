package settings_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"github.com/promlake/promlake/internal/base/settings"
)

// TestForOperator: in a function of the stack, an error names what the stack has.
func TestForOperator(t *testing.T) {
	const text = "query exceeds the limit of 9 series; narrow it, or raise %, of which it is a quarter"
	for _, tc := range []struct{ function, flag, want string }{
		{"", "--query.max-samples", "--query.max-samples"},
		{"promlake-dev-query", "--query.max-samples", "the stack's parameter query-memory"},
		{"promlake-a-rules-query", "--query.timeout", "the stack's parameter query-timeout"},
		{"promlake-dev-rules", "--query.timeout", "the stack's parameter rules-timeout"},
		{"promlake-dev-rules", "--query.cache-bytes", "PROMLAKE_QUERY_CACHE_BYTES, which the stack fixes"},
		{"promlake-dev-ingest", "--memory-limit", "the stack's parameter ingest-memory"},
		{"promlake-dev-query", "--query.max-series", "PROMLAKE_QUERY_MAX_SERIES, which the stack fixes"},
		{"other", "--query.max-series", "PROMLAKE_QUERY_MAX_SERIES, which the stack fixes"},
	} {
		t.Setenv("AWS_LAMBDA_FUNCTION_NAME", tc.function)
		require.Equal(t, strings.ReplaceAll(text, "%", tc.want), settings.ForOperator(strings.ReplaceAll(text, "%", tc.flag)))
	}
}

// TestStackParameters: the table names parameters of the stack and flags that exist.
func TestStackParameters(t *testing.T) {
	var stack struct {
		Params struct{ Default map[string]any }
	}
	file, err := os.ReadFile("../../../infra/serverless.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(file, &stack))
	documented, err := os.ReadFile("../../../docs/configuration.md")
	require.NoError(t, err)
	for parameter, flags := range settings.StackParameters {
		require.Contains(t, stack.Params.Default, parameter)
		for _, flag := range flags {
			require.Contains(t, string(documented), "| `"+flag+"` |", parameter)
		}
	}
}
