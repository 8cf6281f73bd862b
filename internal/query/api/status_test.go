package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/api"
)

func TestMetadata(t *testing.T) {
	h := newHandler(t, testSettings(), newBackend(t))
	const (
		requests = `{"type":"counter","unit":"","help":"Requests \u003cold\u003e."},{"type":"counter","unit":"requests","help":"Requests."},{"type":"unknown","unit":"","help":"x"}`
		up       = `{"type":"gauge","unit":"","help":"Is it up?"}`
	)
	for query, want := range map[string]string{
		"":                    `{"requests_total":[` + requests + `],"up":[` + up + `]}`,
		"?limit=1":            `{"requests_total":[` + requests + `]}`,
		"?limit=2":            `{"requests_total":[` + requests + `],"up":[` + up + `]}`,
		"?limit=0":            `{}`,
		"?limit=-1&metric=up": `{"up":[` + up + `]}`,
		"?metric=requests_total&limit_per_metric=1": `{"requests_total":[{"type":"counter","unit":"","help":"Requests \u003cold\u003e."}]}`,
		"?metric=requests_total&limit_per_metric=0": `{"requests_total":[` + requests + `]}`,
		"?metric=nothing": `{}`,
	} {
		rec := get(t, h, "/api/v1/metadata"+query)
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, `{"status":"success","data":`+want+`}`, rec.Body.String(), query)
	}
}

// chunkCount matches the one number of the TSDB status that Promlake does not have.
var chunkCount = regexp.MustCompile(`"chunkCount":-?\d+`)

func TestTSDBStatusSameAsUpstream(t *testing.T) {
	backend, settings := newBackend(t), testSettings()
	want := reference(t, backend, settings)
	got := serve(t, newHandler(t, settings, backend))
	for _, path := range []string{"/status/tsdb", "/status/tsdb?limit=2", "/status/tsdb?limit=10000"} {
		expected, actual := send(t, want+"/api/v1", httpRequest{path: path}), send(t, got+"/api/v1", httpRequest{path: path})
		require.Contains(t, actual.body, `"chunkCount":0`)
		expected.body = chunkCount.ReplaceAllString(expected.body, `"chunkCount":0`)
		require.Equal(t, expected, actual)
	}
}

// The backend of the test has counted only the series of "anonymous".
func TestTSDBStatusWithoutPostings(t *testing.T) {
	rec := get(t, newHandler(t, testSettings(), tenantBackend{withoutStorage(t)}), "/api/v1/status/tsdb")
	require.Equal(t, http.StatusOK, rec.Code)
	require.Equal(t, `{"status":"success","data":{"headStats":{"numSeries":9,"numLabelPairs":0,"chunkCount":0,"minTime":0,"maxTime":0},`+
		`"seriesCountByMetricName":[],"labelValueCountByLabelName":[],"memoryInBytesByLabelName":[],"seriesCountByLabelValuePair":[]}}`, rec.Body.String())
}

func TestBuildInfo(t *testing.T) {
	settings := testSettings()
	settings.Build = telemetry.Build{Version: "1.2.3", Revision: "abc"}
	rec := get(t, newHandler(t, settings, withoutStorage(t)), "/api/v1/status/buildinfo")
	require.Equal(t, `{"status":"success","data":{"version":"`+api.PrometheusVersion+`","revision":"abc","branch":"","buildUser":"","buildDate":"","goVersion":"`+runtime.Version()+`","promlakeVersion":"1.2.3"}}`, rec.Body.String())
}

// TestBuildInfoWithRuler: Grafana's alerting page reads these fields.
func TestBuildInfoWithRuler(t *testing.T) {
	settings := testSettings()
	settings.Ruler, settings.Application = true, "Grafana Mimir"
	rec := get(t, newHandler(t, settings, withoutStorage(t)), "/api/v1/status/buildinfo")
	require.Equal(t, `{"status":"success","data":{"version":"`+api.PrometheusVersion+`","revision":"","branch":"","buildUser":"","buildDate":"","goVersion":"`+runtime.Version()+`",`+
		`"promlakeVersion":"","application":"Grafana Mimir","features":{"alertmanager_config_api":"false","federated_rules":"false","query_sharding":"false","ruler_config_api":"true"}}}`, rec.Body.String())
}

// TestRulesElsewhere: an empty list would say that there are no rules.
func TestRulesElsewhere(t *testing.T) {
	settings := testSettings()
	settings.RulesURL = "https://api.example"
	h := newHandler(t, settings, withoutStorage(t))
	require.Subset(t, api.Patterns(settings), []string{"/config/v1/rules", "/config/v1/rules/", "/prometheus/config/v1/rules", "/api/prom/rules"})
	for _, path := range []string{
		"/api/v1/rules", "/api/v1/alerts", "/prometheus/api/v1/rules",
		"/config/v1/rules", "/config/v1/rules/web/load", "/prometheus/config/v1/rules/web", "/api/prom/rules", "/api/prom/rules/web",
	} {
		rec := get(t, h, path)
		require.Equal(t, http.StatusNotImplemented, rec.Code)
		require.JSONEq(t, `{"status":"error","errorType":"not_implemented","error":"rules and alerts are not at this address, but at https://api.example"}`, rec.Body.String())
	}
}

// TestPrometheusVersion fails if the module was upgraded and the constant was not: module v0.315.0
// is release 3.15.0.
func TestPrometheusVersion(t *testing.T) {
	gomod, err := os.ReadFile("../../../go.mod")
	require.NoError(t, err)
	m := regexp.MustCompile(`github.com/prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)\n`).FindStringSubmatch(string(gomod))
	require.NotNil(t, m)
	release := regexp.MustCompile(`^0(\d)$`).ReplaceAllString(m[2], "$1")
	require.Equal(t, m[1]+"."+release+"."+m[3], api.PrometheusVersion)
}

func TestConfigAndFlags(t *testing.T) {
	settings := testSettings()
	settings.ConfigYAML = "store: file://./data\n"
	h := newHandler(t, settings, withoutStorage(t))
	require.Equal(t, `{"status":"success","data":{"yaml":"store: file://./data\n"}}`, get(t, h, "/api/v1/status/config").Body.String())
	require.Equal(t, `{"status":"success","data":{"listen":"127.0.0.1:9009","store":"file://./data"}}`, get(t, h, "/api/v1/status/flags").Body.String())
}

func TestRuntimeInfo(t *testing.T) {
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h, err := api.New(testSettings(), withoutStorage(t), nil, func() time.Time { return clock }, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	started := clock
	clock = clock.Add(time.Hour)
	var resp struct {
		Data map[string]any
	}
	require.NoError(t, json.Unmarshal(get(t, h, "/api/v1/status/runtimeinfo").Body.Bytes(), &resp))
	require.Equal(t, started.Format(time.RFC3339), resp.Data["startTime"])
	require.Equal(t, started.Format(time.RFC3339), resp.Data["lastConfigTime"])
	require.Equal(t, clock.Format(time.RFC3339), resp.Data["serverTime"])
	require.Equal(t, true, resp.Data["reloadConfigSuccess"])
	require.Equal(t, "unlimited", resp.Data["storageRetention"])
	require.EqualValues(t, runtime.GOMAXPROCS(0), resp.Data["GOMAXPROCS"])
	require.Positive(t, resp.Data["GOMEMLIMIT"])
}

func TestFeatures(t *testing.T) {
	settings := testSettings()
	settings.Features = map[string]map[string]bool{"api": {"remote_write_receiver": true}, "promql": {"at_modifier": true}}
	var resp struct {
		Data map[string]map[string]bool
	}
	require.NoError(t, json.Unmarshal(get(t, newHandler(t, settings, withoutStorage(t)), "/api/v1/features").Body.Bytes(), &resp))
	require.Equal(t, map[string]bool{
		"admin": false, "lifecycle": false, "search": false, "otlp_write_receiver": false, "remote_write_receiver": true,
		"label_values_match": true, "query_warnings": true, "query_stats": true, "time_range_series": true,
		"time_range_labels": true, "exclude_alerts": true, "sql": false,
	}, resp.Data["api"])
	require.True(t, resp.Data["promql"]["at_modifier"])
	require.True(t, resp.Data["promql_functions"]["rate"])
	require.True(t, resp.Data["promql_functions"]["limitk"] || resp.Data["promql_operators"]["limitk"], "the parser's experimental functions are on")
}

func TestSettings(t *testing.T) {
	complete, err := api.Settings{RemoteReadSampleLimit: settings.Default[api.Settings]().RemoteReadSampleLimit}.Complete()
	require.NoError(t, err)
	require.Equal(t, settings.Default[api.Settings](), complete)
	for _, tc := range []struct {
		settings api.Settings
		err      string
	}{
		{api.Settings{LookbackDelta: -1}, "validate api settings: query.lookback-delta: want at least 1ms, got -1ns"},
		{api.Settings{MaxBodyBytes: -1}, "validate api settings: web.max-body-bytes: want at least 1, got -1"},
		{api.Settings{RemoteReadConcurrency: -1}, "validate api settings: storage.remote.read-concurrent-limit: want at least 1, got -1"},
		{api.Settings{RemoteReadFrameBytes: -1}, "validate api settings: storage.remote.read-max-bytes-in-frame: want at least 1, got -1"},
		{api.Settings{CORSOrigin: "("}, "validate api settings: parse CORS origin \"(\": error parsing regexp: missing closing ): `^(?s:()$`"},
	} {
		_, err := api.New(tc.settings, withoutStorage(t), nil, time.Now, slog.New(slog.DiscardHandler), nil)
		require.EqualError(t, err, tc.err)
	}
}

func TestRegistryIsUsedOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	for _, want := range []bool{true, false} {
		_, err := api.New(testSettings(), withoutStorage(t), nil, time.Now, slog.New(slog.DiscardHandler), reg)
		require.Equal(t, want, err == nil)
	}
}
