package functions

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
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
