package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
)

// target is a scrape target whose answer changes.
type target struct {
	mu     sync.Mutex
	status int
	kind   string // content type
	text   string
	addr   string
}

func newTarget(t *testing.T, text string) *target {
	x := &target{status: http.StatusOK, kind: "text/plain; version=0.0.4", text: text}
	srv := httptest.NewServer(x)
	t.Cleanup(srv.Close)
	x.addr = strings.TrimPrefix(srv.URL, "http://")
	return x
}

func (x *target) set(status int, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.text = status, text
}

func (x *target) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w.Header().Set("Content-Type", x.kind)
	w.WriteHeader(x.status)
	_, _ = io.WriteString(w, x.text)
}

// monitoring returns settings with a configuration of this text, and the file.
func monitoring(t *testing.T, config string) (app.Settings, string) {
	t.Helper()
	dir := t.TempDir()
	s := defaults()
	s.Process.Store = "file://" + filepath.Join(dir, "data")
	s.Prometheus.ConfigFile = filepath.Join(dir, "prometheus.yml")
	s.Prometheus.Queue.Dir = filepath.Join(dir, "queue")
	s.Prometheus.Lifecycle = true
	require.NoError(t, os.WriteFile(s.Prometheus.ConfigFile, []byte(config), 0o600))
	return s, s.Prometheus.ConfigFile
}

// eventually waits until an expression has this many results.
func (s server) eventually(t *testing.T, expr string, n int) model.Vector {
	t.Helper()
	var got model.Vector
	require.Eventually(t, func() bool {
		got = query(t, s.url, expr, time.Now()).(model.Vector)
		return len(got) == n
	}, 2*time.Minute, 20*time.Millisecond, "%s: %s", expr, &got)
	return got
}

// data returns the field data of an answer of the API.
func (s server) data(t *testing.T, path string) map[string]any {
	t.Helper()
	code, body := get(t, s.url+path)
	require.Equal(t, http.StatusOK, code, body)
	var answer struct{ Data map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return answer.Data
}

const fast = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
`

func TestScraping(t *testing.T) {
	steady := newTarget(t, "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 5\na_total{x=\"2\"} 7\n")
	dying := newTarget(t, "d 1\n")
	broken := newTarget(t, "e 1\n")
	open := newTarget(t, "# TYPE o_seconds counter\n# UNIT o_seconds seconds\no_seconds_total 3 # {trace_id=\"abc\"} 1.5\n# EOF\n")
	open.kind = "application/openmetrics-text; version=1.0.0"
	native := prometheus.NewRegistry()
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "nh_seconds", NativeHistogramBucketFactor: 1.1})
	native.MustRegister(latency)
	latency.Observe(3)
	histograms := httptest.NewServer(promhttp.HandlerFor(native, promhttp.HandlerOpts{}))
	defer histograms.Close()
	s, _ := monitoring(t, fast+fmt.Sprintf(`
scrape_configs:
- {job_name: native, scrape_native_histograms: true, static_configs: [{targets: [%q]}]}
- {job_name: steady, static_configs: [{targets: [%q], labels: {zone: a}}]}
- {job_name: dying, static_configs: [{targets: [%q]}]}
- {job_name: broken, static_configs: [{targets: [%q]}]}
- {job_name: open, static_configs: [{targets: [%q]}]}
`, strings.TrimPrefix(histograms.URL, "http://"), steady.addr, dying.addr, broken.addr, open.addr))
	srv := start(t, s)

	srv.eventually(t, `up == 1`, 5)
	srv.eventually(t, `histogram_count(nh_seconds) == 1 and histogram_sum(nh_seconds) == 3`, 1)
	got := srv.eventually(t, `a_total`, 2)
	require.Equal(t, model.LabelValue(steady.addr), got[0].Metric["instance"])
	require.Equal(t, model.LabelValue("a"), got[0].Metric["zone"])
	for _, metric := range []string{"scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added"} {
		srv.eventually(t, metric, 5)
	}
	require.Eventually(t, func() bool {
		_, body := get(t, srv.url+"/api/v1/metadata?metric=a_total")
		return strings.Contains(body, `{"type":"counter","unit":"","help":"A."}`)
	}, time.Minute, 20*time.Millisecond)
	now := time.Now().Unix()
	code, body := get(t, fmt.Sprintf("%s/api/v1/query_exemplars?query=o_seconds_total&start=%d&end=%d", srv.url, now-3600, now+1))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"trace_id":"abc"`)

	// A series that is gone is stale at once; the others go on.
	steady.set(http.StatusOK, "a_total{x=\"2\"} 8\n")
	srv.eventually(t, `a_total`, 1)
	srv.eventually(t, `last_over_time(a_total[5m])`, 2)
	// A target that answers with an error, or with nonsense, is down, and all of its series stale.
	dying.set(http.StatusInternalServerError, "")
	broken.set(http.StatusOK, "this is no metric\ne 2\n")
	srv.eventually(t, `up == 0`, 2)
	srv.eventually(t, `{__name__=~"d|e"}`, 0)
	// They come back with other labels.
	dying.set(http.StatusOK, "d{new=\"yes\"} 1\n")
	broken.set(http.StatusOK, "e 3\n")
	srv.eventually(t, `up == 1`, 5)
	srv.eventually(t, `{__name__=~"d|e"}`, 2)
	srv.eventually(t, `d{new="yes"}`, 1)

	targets := srv.data(t, "/api/v1/targets")
	require.Len(t, targets["activeTargets"], 5)
	for _, target := range targets["activeTargets"].([]any) {
		fields := target.(map[string]any)
		require.NotContains(t, fields["lastError"], "address")
		require.NotContains(t, fields["globalUrl"], "127.0.0.1") // other machines cannot reach it there
	}
	require.Equal(t, []any{"broken", "dying", "native", "open", "steady"}, srv.data(t, "/api/v1/scrape_pools")["scrapePools"])
	code, body = get(t, srv.url+"/api/v1/targets/metadata?metric=o_seconds")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"counter"`)
	// Another tenant sees none of it.
	_, body = caller{tenant: "other"}.get(t, srv.url+"/api/v1/targets")
	require.Contains(t, body, `"activeTargets":[]`)
	_, body = get(t, srv.url+"/metrics")
	require.Contains(t, body, "\npromlake_queue_refused_appends_total 0\n")
	require.Contains(t, body, "\npromlake_queue_failed_appends_total 0\n")
	require.Contains(t, srv.data(t, "/api/v1/status/config")["yaml"], "job_name: steady")
	srv.end(t)

	// A series continues after a restart, because nobody marked its end.
	s.Prometheus.ConfigFile = ""
	srv = start(t, s)
	srv.eventually(t, `up`, 5)
	srv.end(t)
}

func TestReload(t *testing.T) {
	one, two := newTarget(t, "m 1\n"), newTarget(t, "m 2\n")
	config := func(addr string) string {
		return fast + fmt.Sprintf("scrape_configs:\n- {job_name: j, static_configs: [{targets: [%q]}]}\n", addr)
	}
	s, file := monitoring(t, config(one.addr))
	srv := start(t, s)
	srv.eventually(t, `m == 1`, 1)

	reload := func(method string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, srv.url+"/-/reload", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	require.NoError(t, os.WriteFile(file, []byte(config(two.addr)), 0o600))
	code, body := reload(http.MethodPost)
	require.Equal(t, http.StatusOK, code, body)
	srv.eventually(t, `m == 2`, 1)
	srv.eventually(t, `m`, 1) // the series of the former target became stale

	require.NoError(t, os.WriteFile(file, []byte("scrape_configs: [{job_name: x, gce_sd_configs: [{project: p, zone: z}]}]"), 0o600))
	code, body = reload(http.MethodPut)
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, "failed to reload config")
	require.Contains(t, body, "all_sd")
	srv.eventually(t, `prometheus_config_last_reload_successful`, 0) // it is not scraped
	_, body = get(t, srv.url+"/metrics")
	require.Contains(t, body, "prometheus_config_last_reload_successful 0")
	require.Equal(t, false, srv.data(t, "/api/v1/status/runtimeinfo")["reloadConfigSuccess"])
	srv.eventually(t, `m == 2`, 1) // the former configuration stays
	srv.end(t)

	s.Prometheus.Lifecycle = false
	require.NoError(t, os.WriteFile(file, []byte(config(two.addr)), 0o600))
	srv = start(t, s)
	code, body = reload(http.MethodPost)
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, body, "Lifecycle API is not enabled")
	srv.end(t)
}
