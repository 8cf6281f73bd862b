package demo_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/stretchr/testify/require"

	"github.com/prometheus/prometheus/discovery"

	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/base/settings"
)

var quiet = slog.New(slog.DiscardHandler)

func TestConfig(t *testing.T) {
	s := settings.Default[demo.Settings]()
	s.Interval, s.Instance = 200*time.Millisecond, "here"
	c, err := demo.Config(s, "http://127.0.0.1:1234", "hush-hush", quiet)
	require.NoError(t, err)
	require.Empty(t, c.Ignored)
	got := map[string]string{}
	for _, x := range c.Scrapes {
		require.Equal(t, "hush-hush", string(x.HTTPClientConfig.Authorization.Credentials))
		for _, g := range x.ServiceDiscoveryConfigs[0].(discovery.StaticConfig) {
			targets, errs := scrape.TargetsFromGroup(g, x, nil, labels.NewBuilder(labels.EmptyLabels()))
			require.Empty(t, errs)
			got[x.JobName] = fmt.Sprint(targets[0].URL(), targets[0].Labels(labels.NewBuilder(labels.EmptyLabels())))
		}
	}
	require.Equal(t, map[string]string{
		"promlake": `http://127.0.0.1:1234/metrics {instance="127.0.0.1:1234", job="promlake"}`,
		"node":     `http://127.0.0.1:1234/metrics/node {instance="here", job="node"}`,
	}, got)
	require.NotContains(t, c.String(), "hush-hush")

	s.ProcPath = t.TempDir() + "/none"
	c, err = demo.Config(s, "http://127.0.0.1:1234", "", quiet)
	require.NoError(t, err)
	require.Len(t, c.Scrapes, 1)
}

// TestExampleFiles: the shipped files pass promlake check.
func TestExampleFiles(t *testing.T) {
	var errs bytes.Buffer
	c := promconfig.Checker{
		Lint: promconfig.Lint{DuplicateRules: true, Lookback: time.Minute}, Parser: parser.NewParser(parser.Options{}),
		Out: io.Discard, Err: &errs, Logger: quiet,
	}
	require.Equal(t, promconfig.Result{}, c.Config("example/prometheus.yml"))
	require.Empty(t, errs.String())
}

func TestNodeHandler(t *testing.T) {
	s := settings.Default[demo.Settings]()
	get := func(s demo.Settings) (int, string) {
		w := httptest.NewRecorder()
		demo.NodeHandler(s, quiet, time.Now).ServeHTTP(w, httptest.NewRequest(http.MethodGet, demo.NodePath, nil))
		return w.Code, w.Body.String()
	}
	code, body := get(s)
	require.Equal(t, http.StatusOK, code)
	for _, name := range []string{"node_cpu_seconds_total{", "node_memory_MemAvailable_bytes ", "node_load1 ", `node_scrape_collector_success{collector="netdev"} 1`} {
		require.Contains(t, body, "\n"+name)
	}
	s.ProcPath = t.TempDir() + "/none"
	code, body = get(s)
	require.Equal(t, http.StatusNotFound, code)
	require.Contains(t, body, "no metrics of this machine: open proc")
}

// TestWelcome: the welcome is printed once the examples have answers.
func TestWelcome(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("a request without the token")
		}
		result := "[]"
		if asked.Add(1) > 2 {
			result = "[{}]"
		}
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":`+result+`}}`)
	}))
	defer srv.Close()
	var out bytes.Buffer
	demo.Welcome(t.Context(), settings.Default[demo.Settings](), srv.URL, "secret", &out, quiet)
	require.Greater(t, asked.Load(), int64(3))
	require.Contains(t, out.String(), "Dashboard of this machine: "+srv.URL+"/#/dashboards?")
	for _, e := range demo.Examples() {
		require.Contains(t, out.String(), `curl -sG -H "Authorization: Bearer $PROMLAKE_TOKEN" `+srv.URL+"/api/v1/query --data-urlencode 'query="+e.Query+"'\n")
	}
}

func TestSettingsValidate(t *testing.T) {
	s := settings.Default[demo.Settings]()
	require.NoError(t, s.Validate())
	s.Interval, s.ProcPath = time.Millisecond, ""
	err := s.Validate()
	require.ErrorContains(t, err, "demo.interval: want at least 100ms, got 1ms")
	require.ErrorContains(t, err, "demo.proc-path")
}
