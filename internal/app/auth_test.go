package app_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/selfwrite"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/tests/support/secrettest"
)

// caller asks a server as somebody. It implements http.RoundTripper.
type caller struct{ token, tenant string }

func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.tenant != "" {
		r.Header.Set(tenant.Header, c.tenant)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (c caller) get(t *testing.T, address string) (int, string) {
	t.Helper()
	return c.send(t, http.MethodGet, address)
}

func (c caller) send(t *testing.T, method, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: c}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// ask evaluates an expression now and returns the whole answer.
func (c caller) ask(t *testing.T, base, expr string) (int, string) {
	t.Helper()
	return c.get(t, base+"/api/v1/query?query="+url.QueryEscape(expr))
}

// write sends one sample of the series named metric, and returns what went wrong.
func (c caller) write(t *testing.T, base, metric string) error {
	t.Helper()
	client, err := remote.NewAPI(base, remote.WithAPIHTTPClient(&http.Client{Transport: c}))
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: metric}},
		Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}},
	}}})
	return err
}

// entry is what a token named by its tenant and access may do.
func entry(t *testing.T, token string, tenants, access string) auth.Entry {
	t.Helper()
	e, err := auth.NewEntry(token, strings.Split(tenants, ","), strings.Split(access, ","), token)
	require.NoError(t, err)
	return e
}

func TestTenantsAreApart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	d := auth.Document{Version: auth.Version, Tokens: []auth.Entry{
		entry(t, "a", "team-a", "read,write"), entry(t, "b", "team-b", "read,write"), entry(t, "ops", "*", "admin"),
	}}
	writeDocument(t, file, d)
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "file:"+file
	srv := start(t, s)
	a, b, ops, nobody := caller{token: "a"}, caller{token: "b"}, caller{token: "ops"}, caller{}

	require.NoError(t, a.write(t, srv.url, "of_a"))
	require.NoError(t, b.write(t, srv.url, "of_b"))
	require.ErrorContains(t, nobody.write(t, srv.url, "of_nobody"), "this server requires a token")
	require.ErrorContains(t, caller{"a", "team-b"}.write(t, srv.url, "forged"), `the token is not for tenant "team-b"`)

	for _, tc := range []struct {
		who  caller
		code int
		want string
	}{
		{a, 200, `"of_a"`},
		{b, 200, `"of_b"`},
		{caller{"a", "team-a"}, 200, `"of_a"`},
		{caller{"a", "team-b"}, 403, `"errorType":"forbidden"`},
		{nobody, 401, `"errorType":"unauthorized"`},
		{caller{"", "team-a"}, 401, `"errorType":"unauthorized"`},
		{caller{"c", "team-a"}, 401, "the token is not known"},
		{ops, 403, `lacks access \"read\"`},
	} {
		code, body := tc.who.ask(t, srv.url, `{__name__=~"of_.*|forged"}`)
		require.Equal(t, tc.code, code, body)
		require.Contains(t, body, tc.want)
		require.Equal(t, tc.code == 200, strings.Count(body, `"metric"`) == 1, body)
	}
	// The paths of Amazon Managed Service for Prometheus, whose workspace is the tenant.
	for path, want := range map[string]int{"team-a/api/v1/query?query=of_a": 200, "team-b/api/v1/query?query=of_b": 403, "team-a/api/v1/labels": 200, "team-a/api/v1/status/flags": 403} {
		code, body := a.get(t, srv.url+"/workspaces/"+path)
		require.Equal(t, want, code, body)
		code, _ = nobody.get(t, srv.url+"/workspaces/"+path)
		require.Equal(t, 401, code, path)
	}
	for path, header := range map[string]string{"/workspaces/team-a/api/v1/remote_write": "", "/api/v1/remote_write": "team-a", "/workspaces/team-b/api/v1/remote_write": "team-a"} {
		api, err := remote.NewAPI(srv.url, remote.WithAPIHTTPClient(&http.Client{Transport: caller{"a", header}}), remote.WithAPIPath(path))
		require.NoError(t, err)
		_, err = api.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
			Labels:  []prompb.Label{{Name: "__name__", Value: "aliased"}, {Name: "path", Value: path}},
			Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}},
		}}})
		require.NoError(t, err, path)
	}
	code, body := a.get(t, srv.url+"/workspaces/team-a/api/v1/query?query=count(aliased)")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"3"`)
	for path, want := range map[string]int{"/-/healthy": 200, "/-/ready": 200, "/metrics": 401, "/assets/nothing": 404} {
		code, _ := get(t, srv.url+path)
		require.Equal(t, want, code, path)
	}
	code, body = ops.get(t, srv.url+"/metrics")
	require.Equal(t, 200, code)
	require.Contains(t, body, `promlake_auth_requests_total{result="unknown"} 1`)
	require.Contains(t, body, `promlake_http_request_duration_seconds_count{code="401",handler="/api/v1/write",method="post"} 1`)
	code, _ = a.get(t, srv.url+"/metrics")
	require.Equal(t, 403, code)

	// Tokens change while the server serves: the old one ends, the new one begins.
	d.Tokens[0] = entry(t, "a2", "team-a", "read,write")
	writeDocument(t, file, d)
	code, _ = a.ask(t, srv.url, "of_a")
	require.Equal(t, 401, code)
	code, body = caller{token: "a2"}.ask(t, srv.url, "of_a")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"of_a"`)
	srv.end(t)
}

// TestReadersSeeNothingOfTheMachine: flags name other tenants and where secrets are. They are for
// operators, however the path is spelled.
func TestReadersSeeNothingOfTheMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	writeDocument(t, file, auth.Document{Version: auth.Version, Tokens: []auth.Entry{
		entry(t, "a", "team-a", "read,write,admin"), entry(t, "r", "team-a", "read,write"), entry(t, "ops", "*", "admin"),
	}})
	for _, tokens := range []string{"", "file:" + file} {
		s := defaults()
		s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), tokens
		s.Process.Flags = flags.Values{{Name: "compactor.tenant-retention", Text: "other=1h"}}
		srv := start(t, s)
		host, err := os.Hostname()
		require.NoError(t, err)
		for path, secret := range map[string]string{"flags": "other=1h", "config": "other=1h", "runtimeinfo": host} {
			for _, prefix := range []string{"/api/v1/", "/prometheus/api/v1/"} {
				for _, page := range []string{"status/" + path, "status%2F" + path, "%73tatus/" + path, "status//" + path, "x/../status/" + path, "status/" + path + "/", "STATUS/" + path} {
					code, body := caller{token: "a"}.get(t, srv.url+prefix+page)
					if tokens != "" {
						require.GreaterOrEqual(t, code, 400, "%s%s", prefix, page)
						require.NotContains(t, body, secret)
					}
				}
				code, body := caller{token: "ops"}.get(t, srv.url+prefix+"status/"+path)
				require.Equal(t, 200, code, body)
				require.Contains(t, body, secret)
			}
		}
		code, body := caller{token: "a"}.get(t, srv.url+"/api/v1/status/flags")
		if tokens == "" {
			require.Equal(t, 200, code, "without tokens everybody is an operator")
		} else {
			require.Equal(t, 403, code)
			require.Contains(t, body, `"errorType":"forbidden"`)
		}
		for _, path := range []string{"/api/v1/status/active_queries", "/prometheus/api/v1/status/active_queries", "/api/v1/status%2Factive_queries", "/api/v1/status//active_queries"} {
			for token, want := range map[string]int{"r": 403, "a": 404} {
				code, body := caller{token: token}.send(t, http.MethodDelete, srv.url+path+"?id=1")
				switch plain := strings.HasSuffix(path, "/v1/status/active_queries"); {
				case plain && (tokens != "" || want == 404):
					require.Equal(t, want, code, body)
				case tokens != "" && token == "r":
					require.NotContains(t, body, "no query", "however the path is spelled")
				}
			}
		}
		code, _ = caller{token: "a"}.get(t, srv.url+"/api/v1/status/spending/tenants")
		require.Equal(t, tokens != "", code == 403)
		code, _ = caller{token: "a"}.get(t, srv.url+"/api/v1/status/buildinfo")
		require.Equal(t, 200, code, "clients learn from it what they may ask")
		srv.end(t)
	}
}

func TestTokensInAParameter(t *testing.T) {
	ssm := secrettest.StartSSM(t)
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "ssm:/promlake/test/tokens"
	srv := start(t, s)
	a := caller{token: "a"}
	require.Zero(t, ssm.Requests(), "not read before a request has a token")
	code, _ := get(t, srv.url+"/api/v1/labels")
	require.Equal(t, 401, code)
	require.Zero(t, ssm.Requests())

	text, err := auth.Document{Version: auth.Version, Tokens: []auth.Entry{entry(t, "a", "team-a", "read,write")}}.Text()
	require.NoError(t, err)
	ssm.SetDown(true)
	resp, err := (&http.Client{Transport: a}).Get(srv.url + "/api/v1/labels")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 503, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))

	// The sender tries again by itself until the document can be read.
	ssm.Put("/promlake/test/tokens", string(text))
	ssm.SetDown(false)
	require.NoError(t, a.write(t, srv.url, "of_a"))
	code, body := a.ask(t, srv.url, "of_a")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"of_a"`)
	require.Equal(t, 2, ssm.Requests())
	srv.end(t)
}

// TestSelf: a process that runs alone stores its own metrics, and the series of an ended process
// become stale.
func TestSelf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	writeDocument(t, file, auth.Document{Version: auth.Version, Tokens: []auth.Entry{entry(t, "ops", "promlake", "read")}})
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "file:"+file
	s.Process.Self.URL, s.Process.Self.Interval = selfwrite.Here, time.Second
	ops := caller{token: "ops"}

	srv := start(t, s)
	code, _ := get(t, srv.url+"/api/v1/labels")
	require.Equal(t, 401, code)
	require.Eventually(t, func() bool {
		_, body := ops.ask(t, srv.url, `promlake_auth_requests_total{job="promlake",result="absent"} == 1`)
		return strings.Contains(body, `"metric"`)
	}, time.Minute, 100*time.Millisecond)
	_, body := ops.ask(t, srv.url, `increase(promlake_auth_requests_total{result="absent"}[1m]) > 0`)
	require.Contains(t, body, `"metric"`, "the first request counts")
	srv.end(t)

	s.Process.Self.URL = ""
	srv = start(t, s)
	_, body = ops.ask(t, srv.url, `{job="promlake"}`)
	require.Contains(t, body, `"result":[]`, "the values of a process that is gone are stale")
	_, body = ops.ask(t, srv.url, `last_over_time(promlake_build_info{job="promlake"}[5m])`)
	require.Contains(t, body, `"metric"`)
	_, body = ops.ask(t, srv.url, `last_over_time(promlake_self_samples[5m])`)
	t.Log("samples of one write of promlake serve:", body)
	srv.end(t)
}

func TestDemoWithTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	writeDocument(t, file, auth.Document{Version: auth.Version, Tokens: []auth.Entry{entry(t, "home", "anonymous", "read")}})
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "file:"+file
	d := settings.Default[demo.Settings]()
	d.Interval = 200 * time.Millisecond
	s.Demo, s.Feeder = true, d
	srv := start(t, s)
	require.Eventually(t, func() bool { return strings.Contains(srv.out.String(), "remote_write target") }, time.Minute, 10*time.Millisecond)
	require.Contains(t, srv.out.String(), `curl -sG -H "Authorization: Bearer $PROMLAKE_TOKEN" `+srv.url)
	_, body := caller{token: "home"}.ask(t, srv.url, `count(up)`)
	require.Contains(t, body, `"2"`)
	srv.end(t)
}
