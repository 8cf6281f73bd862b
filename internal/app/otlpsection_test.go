package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// TestSectionOTLP: the section otlp of the configuration decides how OTLP metrics become series, on
// every path and after each reload, also for series that are known. What it does not name is as the
// flags say, and one that cannot be applied changes nothing.
func TestSectionOTLP(t *testing.T) {
	s, file := monitoring(t, "otlp: {promote_resource_attributes: [' host ']}\n")
	s.Ingest.OTLP.KeepIdentifying = true
	s.Ingest.Limits.NameScheme = "legacy"
	srv := start(t, s)
	sent := 0
	send := func() model.Metric {
		for _, path := range []string{"/api/v1/otlp/v1/metrics", "/prometheus/api/v1/otlp/v1/metrics", "/otlp/v1/metrics", "/opentelemetry/v1/metrics", "/v1/metrics"} {
			sent++
			text := fmt.Sprintf(`{"resourceMetrics": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}, {"key": "host", "value": {"stringValue": "h"}}]},
				"scopeMetrics": [{"metrics": [{"name": "m.n", "gauge": {"dataPoints": [{"timeUnixNano": "%d", "asDouble": %d}]}}]}]}]}`, time.Now().UnixNano(), sent)
			resp, err := http.Post(srv.url+path, "application/json", strings.NewReader(text))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		return srv.eventually(t, fmt.Sprintf(`m_n == %d`, sent), 1)[0].Metric
	}
	configure := func(text string, code int, wants string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		resp, err := http.Post(srv.url+"/-/reload", "", nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, code, resp.StatusCode, string(body))
		require.Contains(t, string(body), wants)
	}
	promoted := model.Metric{"__name__": "m_n", "job": "s", "host": "h"}
	require.Equal(t, promoted, send())
	srv.eventually(t, `target_info{service_name="s"}`, 1) // by the flag

	configure("otlp: {promote_all_resource_attributes: true, ignore_resource_attributes: [host], keep_identifying_resource_attributes: false}", http.StatusOK, "")
	require.Equal(t, model.Metric{"__name__": "m_n", "job": "s", "service_name": "s"}, send())
	configure("otlp: {translation_strategy: NoTranslation}", http.StatusInternalServerError, "otlp.translation-strategy: NoTranslation keeps names")
	require.Equal(t, model.Metric{"__name__": "m_n", "job": "s", "service_name": "s"}, send())
	configure("otlp: {promote_resource_attributes: [host]}", http.StatusOK, "")
	require.Equal(t, promoted, send())
	configure("global: {external_labels: {zone: eu}}", http.StatusOK, "")
	require.Equal(t, model.Metric{"__name__": "m_n", "job": "s"}, send())

	// External labels are those of the tenant of the configuration, and follow reloads, too.
	_, text := get(t, srv.url+"/federate?match[]=m_n")
	require.Contains(t, text, `m_n{job="s",instance="",zone="eu"} `)
	srv.end(t)
}
