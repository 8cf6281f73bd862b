package functions

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
	"github.com/promlake/promlake/tests/support/secrettest"
)

// bearer sends a token with every request. It implements http.RoundTripper.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (b bearer) write(t *testing.T, base string) error {
	t.Helper()
	client, err := remote.NewAPI(base, remote.WithAPIHTTPClient(&http.Client{Transport: b}))
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "x"}},
		Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 7}},
	}}})
	return err
}

func (b bearer) query(t *testing.T, base, expr string) (int, string) {
	t.Helper()
	resp, err := (&http.Client{Transport: b}).Get(base + "/api/v1/query?query=" + url.QueryEscape(expr))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestPrincipals: functions map the signers that AWS has checked to the tenants of the document,
// which tokens share, through the paths of Amazon Managed Service for Prometheus as well.
func TestPrincipals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	var d auth.Document
	d.Version = auth.Version
	const aws, session = "arn:aws:iam::123456789012:", "arn:aws:sts::123456789012:assumed-role/"
	for arn, may := range map[string]string{aws + "role/prometheus": "write", aws + "root": "read"} {
		e, err := auth.NewPrincipalEntry(arn, []string{"ws-1"}, []string{may}, "")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
	}
	e, err := auth.NewEntry("reads", []string{"ws-1"}, []string{"read"}, "")
	require.NoError(t, err)
	d.Tokens = append(d.Tokens, e)
	text, err := d.Text()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	s := start(t, "PROMLAKE_AUTH_TOKENS=file:"+file, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_QUERY_MAX_STALENESS=0s")

	signed := func(e event, path, arn, token string) event {
		e["rawPath"] = path
		headers := e["headers"].(map[string]any)
		delete(headers, "x-scope-orgid")
		headers["authorization"] = "AWS4-HMAC-SHA256 Credential=AKIA/20251124/us-east-1/lambda/aws4_request, SignedHeaders=host, Signature=0"
		if token != "" {
			headers["authorization"] = "Bearer " + token
		}
		if arn != "" {
			e["requestContext"].(map[string]any)["authorizer"] = map[string]any{"iam": map[string]any{"userArn": arn}}
		}
		return e
	}
	for _, tc := range []struct {
		path, arn, token string
		code             int
		body             string // contained
	}{
		{"/workspaces/ws-1/api/v1/remote_write", session + "prometheus/s", "", 204, ""},
		{"/api/v1/remote_write", session + "prometheus/s", "reads", 204, ""},
		{"/workspaces/ws-2/api/v1/remote_write", session + "prometheus/s", "", 403, "the principal " + aws + `role/prometheus is not for tenant "ws-2"`},
		{"/api/v1/write", session + "grafana/s", "", 403, "the principal " + aws + `root lacks access "write"`},
		{"/api/v1/write", "arn:aws:sts::210987654321:assumed-role/prometheus/s", "", 403, "no entry for the principal arn:aws:sts::210987654321:assumed-role/prometheus/s"},
		{"/api/v1/write", "", "", 401, "malformed"},
		{"/api/v1/write", "", "reads", 403, "the token lacks access"},
	} {
		a := ask(t, s.ingest, signed(recorded(t, "http-api-write-v1"), tc.path, tc.arn, tc.token))
		require.Equal(t, tc.code, a.Status, "%v: %s", tc, a.Body)
		require.Contains(t, a.Body, tc.body)
	}
	for _, name := range []string{"http-api-query", "function-url-query"} {
		for _, tc := range []struct {
			path, arn, token string
			code             int
		}{
			{"/workspaces/ws-1/api/v1/query", session + "grafana/s", "", 200},
			{"/api/v1/query", aws + "user/analysts/reader", "", 200},
			{"/api/v1/query", "", "reads", 200},
			{"/workspaces/ws-2/api/v1/query", session + "grafana/s", "", 403},
			{"/api/v1/query", session + "prometheus/s", "reads", 403},
			{"/api/v1/query", "", "", 401},
		} {
			e := signed(recorded(t, name), tc.path, tc.arn, tc.token)
			e["rawQueryString"] = "query=count(node_load1)%20%3E%200&time=1764000015"
			a := ask(t, s.query, e)
			require.Equal(t, tc.code, a.Status, "%s %v: %s", name, tc, a.Body)
			if tc.code == 200 {
				require.Contains(t, a.Body, `"value"`, "the samples of the tenant")
			}
		}
	}
}

// TestTokensAndOwnMetrics: functions read tokens from a parameter, and write their own metrics at
// their end: the ingest function to its own write stage, the query function to the API.
func TestTokensAndOwnMetrics(t *testing.T) {
	ssm := secrettest.StartSSM(t)
	d := auth.Document{Version: auth.Version}
	for token, may := range map[string][2]string{"a": {"team-a", "write"}, "a-reads": {"team-a", "read"}, "self": {"promlake", "write"}, "ops": {"promlake", "read"}} {
		e, err := auth.NewEntry(token, may[:1], may[1:], "")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
	}
	text, err := d.Text()
	require.NoError(t, err)
	ssm.Put("/promlake/test/tokens", string(text))
	ssm.Put("/promlake/test/self-token", "self\n")

	gateway := &emulator.Gateway{}
	api := httptest.NewServer(gateway)
	defer api.Close()
	store := "PROMLAKE_STORE=file://" + t.TempDir()
	function := func(program string, more ...string) *emulator.Function {
		env := append(more, store, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_AUTH_TOKENS=ssm:/promlake/test/tokens", "PROMLAKE_QUERY_MAX_STALENESS=0s")
		for _, name := range []string{"AWS_ENDPOINT_URL_SSM", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
			env = append(env, name+"="+os.Getenv(name))
		}
		return lambdatest.Start(t, emulator.Settings{Path: programs[program], Name: program, Env: env})
	}
	ingest := function("ingest-fn", "PROMLAKE_SELF_URL=here")
	query := function("query-fn", "PROMLAKE_SELF_URL="+api.URL, "PROMLAKE_SELF_TOKEN=ssm:/promlake/test/self-token")
	gateway.Routes = map[string]emulator.Invoker{"POST /api/v1/write": ingest, "$default": query}

	require.ErrorContains(t, bearer("").write(t, api.URL), "this server requires a token")
	require.ErrorContains(t, bearer("a-reads").write(t, api.URL), `the token lacks access "write"`)
	require.NoError(t, bearer("a").write(t, api.URL))
	for token, want := range map[string]int{"": 401, "b": 401, "a": 403, "a-reads": 200} {
		code, body := bearer(token).query(t, api.URL, "x")
		require.Equal(t, want, code, body)
	}
	_, body := bearer("a-reads").query(t, api.URL, "x")
	require.Contains(t, body, `"7"`)

	require.NoError(t, query.Stop())
	require.NoError(t, ingest.Stop())
	gateway.Routes["$default"] = function("query-fn")
	for _, f := range []string{"ingest-fn", "query-fn"} {
		_, body = bearer("ops").query(t, api.URL, `last_over_time(promlake_function_invocations_total{job="`+f+`",function="`+f+`",instance=~"2024/.*"}[5m])`)
		require.Contains(t, body, `"metric"`, "%s left its metrics", f)
		_, body = bearer("ops").query(t, api.URL, `promlake_function_invocations_total{job="`+f+`"}`)
		require.Contains(t, body, `"result":[]`, "those of %s are over", f)
	}
}
