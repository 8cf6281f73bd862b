package functions

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// TestDividedQueries: the query function divides a range query over invocations of itself, which
// check the rights of its sender: of a token, or of a principal that AWS has identified.
func TestDividedQueries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	const role, session = "arn:aws:iam::123456789012:role/grafana", "arn:aws:sts::123456789012:assumed-role/grafana/s"
	token, err := auth.NewEntry("all", []string{"team-a"}, []string{"read", "write"}, "")
	require.NoError(t, err)
	principal, err := auth.NewPrincipalEntry(role, []string{"team-a"}, []string{"read"}, "")
	require.NoError(t, err)
	text, err := auth.Document{Version: auth.Version, Tokens: []auth.Entry{token, principal}}.Text()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))

	s := start(t, "PROMLAKE_AUTH_TOKENS=file:"+file, "PROMLAKE_INGEST_MODE=direct")
	var divided *emulator.Function
	var mu sync.Mutex
	var events, answers []string
	env := lambdatest.StartAPI(t, func(ctx context.Context, event []byte) ([]byte, error) {
		out, err := divided.Invoke(ctx, event)
		mu.Lock()
		defer mu.Unlock()
		events, answers = append(events, string(event)), append(answers, string(out))
		return out, err
	})
	divided = lambdatest.Start(t, emulator.Settings{Path: programs["query-fn"], Name: "query-fn", Environments: 4, Env: append(env,
		"PROMLAKE_STORE=file://"+s.store, "PROMLAKE_AUTH_TOKENS=file:"+file, "PROMLAKE_QUERY_WORKERS=lambda:self",
		"PROMLAKE_QUERY_DIVIDE_INVOCATIONS=3", "PROMLAKE_QUERY_DIVIDE_BYTES=1", "PROMLAKE_QUERY_DIVIDE_WINDOWS=-1")})

	by := func(e event, authorization, arn string) event {
		headers := e["headers"].(map[string]any)
		headers["authorization"], headers["x-scope-orgid"] = authorization, "team-a"
		delete(headers, "accept-encoding")
		if arn != "" {
			e["requestContext"].(map[string]any)["authorizer"] = map[string]any{"iam": map[string]any{"userArn": arn}}
		}
		return e
	}
	written := by(recorded(t, "http-api-write-v1"), "Bearer all", "")
	require.Equal(t, 204, ask(t, s.ingest, written).Status)
	const asked = "query=rate(node_cpu_seconds_total%5B1m%5D)%20or%20node_load1&start=1764000000&end=1764000300&step=5"
	for name, sender := range map[string][2]string{"token": {"Bearer all", ""}, "principal": {"AWS4-HMAC-SHA256 Credential=x", session}} {
		t.Run(name, func(t *testing.T) {
			for _, entrance := range []string{"http-api-query", "function-url-query"} {
				events, answers = nil, nil
				question := func() event {
					return by(asking(t, entrance, "/api/v1/query_range", asked), sender[0], sender[1])
				}
				want, got := ask(t, s.query, question()), ask(t, divided, question())
				require.Equal(t, 200, got.Status, got.Body)
				require.Contains(t, got.Body, `"values"`)
				require.Equal(t, want.Body, got.Body)
				require.Len(t, answers, 3)
				for i, a := range answers {
					require.True(t, strings.HasPrefix(a, `{"statusCode":200,`), a)
					require.Equal(t, sender[1] == "", strings.Contains(events[i], "Bearer all"))
					require.NotContains(t, events[i], "AWS4-HMAC")
				}
			}
		})
	}
	require.Greater(t, len(divided.Processes()), 1, "others evaluate")
	events = nil
	for _, sender := range [][2]string{{"Bearer none", ""}, {"Bearer all", "arn:aws:iam::123456789012:role/other"}} {
		a := ask(t, divided, by(asking(t, "http-api-query", "/api/v1/query_range", asked), sender[0], sender[1]))
		require.Contains(t, []int{401, 403}, a.Status, a.Body)
		forged := by(asking(t, "http-api-query", "/api/v1/piece", ""), sender[0], sender[1])
		delete(forged["requestContext"].(map[string]any), "domainName")
		require.Contains(t, []int{401, 403}, ask(t, divided, forged).Status, "a piece has no other rights")
	}
	require.Empty(t, events)
}
