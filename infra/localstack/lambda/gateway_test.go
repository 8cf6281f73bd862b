package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// lambdaAPI answers as Lambda's Invoke API does.
func lambdaAPI(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(event), `"version":"2.0"`) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		switch r.URL.Path {
		case "/2015-03-31/functions/promlake-dev-ingest/invocations":
			_, _ = io.WriteString(w, `{"statusCode":204,"headers":{"x-from":"ingest"}}`)
		case "/2015-03-31/functions/promlake-dev-query/invocations":
			if strings.Contains(string(event), "boom") {
				w.Header().Set("X-Amz-Function-Error", "Unhandled")
				_, _ = io.WriteString(w, `{"errorType":"Runtime.ExitError","errorMessage":"killed"}`)
				return
			}
			_, _ = io.WriteString(w, `{"statusCode":200,"body":"eA==","isBase64Encoded":true}`)
		case "/2015-03-31/functions/promlake-dev-rules/invocations":
			_, _ = io.WriteString(w, `{"statusCode":202,"headers":{"x-from":"rules"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// startGateway runs a gateway in front of lambdaAPI, and returns a function that sends it requests.
func startGateway(t *testing.T, rules string) (ask func(method, path string) (code int, body string, h http.Header)) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	g := newGateway()
	g.Endpoint, g.Ingest, g.Query, g.Rules = lambdaAPI(t).URL, "promlake-dev-ingest", "promlake-dev-query", rules
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- g.Run(t.Context(), flags.Streams{Out: in, Err: io.Discard}) }()
	line := make([]byte, 100)
	n, err := out.Read(line)
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "listening on ")
	require.True(t, ok, string(line[:n]))

	return func(method, path string) (int, string, http.Header) {
		req, err := http.NewRequest(method, url+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b), resp.Header
	}
}

func TestGateway(t *testing.T) {
	ask := startGateway(t, "")
	for _, path := range []string{"/api/v1/write", "/api/v1/push", "/prometheus/api/v1/write", "/prometheus/api/v1/push"} {
		code, _, h := ask("POST", path)
		require.Equal(t, 204, code, path)
		require.Equal(t, "ingest", h.Get("X-From"), path)
	}
	code, body, _ := ask("GET", "/api/v1/query?query=up")
	require.Equal(t, 200, code)
	require.Equal(t, "x", body)
	code, body, _ = ask("GET", "/api/v1/boom")
	require.Equal(t, 500, code)
	require.JSONEq(t, `{"message":"Internal Server Error"}`, body)
	for _, path := range []string{"/assets/x", "/metrics", "/-/compact", "/prometheus/metrics", "/config/v1/rules"} {
		code, body, _ = ask("GET", path)
		require.Equal(t, 404, code, path)
		require.JSONEq(t, `{"message":"Not Found"}`, body)
	}
}

// TestGatewayToRules: the API for rules exists where there is a function for it, which also shows
// the rules.
func TestGatewayToRules(t *testing.T) {
	ask := startGateway(t, "promlake-dev-rules")
	for _, path := range []string{"/config/v1/rules", "/prometheus/config/v1/rules/web/availability"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			code, _, h := ask(method, path)
			require.Equal(t, 202, code, path)
			require.Equal(t, "rules", h.Get("X-From"), path)
		}
		code, _, _ := ask("PUT", path)
		require.Equal(t, 404, code, path)
	}
	for _, path := range []string{"/api/v1/rules?type=alert", "/prometheus/api/v1/alerts"} {
		code, _, h := ask("GET", path)
		require.Equal(t, 202, code, path)
		require.Equal(t, "rules", h.Get("X-From"), path)
	}
	code, body, _ := ask("GET", "/api/v1/query?query=up")
	require.Equal(t, 200, code)
	require.Equal(t, "x", body)
}
