package queryapp_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/query"
)

// serve runs the ingest and query stages over a fresh store that holds three series named x, and
// returns their URL.
func serve(t *testing.T, s queryapp.Settings) string {
	t.Helper()
	u, _ := serveAt(t, s)
	return u
}

// serveAt is serve that also returns the directory of the store.
func serveAt(t *testing.T, s queryapp.Settings) (u, dir string) {
	t.Helper()
	dir = t.TempDir()
	u = restart(t, s, dir)
	write(t, u, "x", "a", "b", "c")
	return u, dir
}

// restart runs the stages over a store that may hold something, and returns their URL.
func restart(t *testing.T, s queryapp.Settings, dir string) string {
	t.Helper()
	p := process.DefaultSettings()
	p.Store, p.Flags = "file://"+dir, flags.Values{{Name: "query.timeout", Text: "2m"}}
	h, end, err := process.Open(t.Context(), p, slog.New(slog.DiscardHandler), ingestapp.New(nil, ingest.DefaultSettings()), queryapp.New(s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, end()) })
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// write writes a sample of now of each job.
func write(t *testing.T, u, metric string, jobs ...string) {
	t.Helper()
	req := &prompb.WriteRequest{}
	for _, job := range jobs {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: metric}, {Name: "job", Value: job}},
			Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}},
		})
	}
	client, err := remote.NewAPI(u)
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, req)
	require.NoError(t, err)
}

func get(t *testing.T, u string) (int, string) {
	t.Helper()
	resp, err := http.Get(u)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestLimitsBecome422: an exceeded limit of the stage is answered as the API promises, with the
// name of the flag.
func TestLimitsBecome422(t *testing.T) {
	for _, tc := range []struct {
		flag string
		set  func(*query.Settings)
	}{
		{"--query.max-series", func(s *query.Settings) { s.MaxSeries = 2 }},
		{"--query.max-samples", func(s *query.Settings) { s.MaxSamples = 2 }},
		{"--query.timeout", func(s *query.Settings) { s.SamplesPerSecond, s.Threads, s.Timeout = 1, 1, time.Minute }},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			s := settings.Default[queryapp.Settings]()
			tc.set(&s.Query)
			base := serve(t, s)
			var jobs []string
			for i := range 100 {
				jobs = append(jobs, strconv.Itoa(i))
			}
			write(t, base, "x", jobs...)
			code, body := get(t, base+"/api/v1/query?query=x")
			require.Equal(t, http.StatusUnprocessableEntity, code, body)
			require.Contains(t, body, `"errorType":"execution"`)
		})
	}
}

func TestStatus(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	for path, want := range map[string]string{
		"/api/v1/status/tsdb":   `"seriesCountByMetricName":[{"name":"x","value":3}]`,
		"/api/v1/status/flags":  `"query.timeout":"2m"`,
		"/api/v1/status/config": `query.timeout: \"2m\"`,
	} {
		code, body := get(t, base+path)
		require.Equal(t, http.StatusOK, code, body)
		require.Contains(t, body, want)
	}
}

// TestCardinality counts series and prices them, by the paths of VictoriaMetrics and Mimir.
func TestCardinality(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	for path, want := range map[string]string{
		"/api/v1/status/tsdb?topN=1&focusLabel=job&match[]=x%7Bjob!=%22a%22%7D": `"totalSeries":2,"totalLabelValuePairs":3,.*"seriesCountByMetricName":\[{"name":"x","value":2,"samples":2,"bytes":[1-9]\d*,"dollarsPerMonth":[^0].*}\].*"seriesCountByFocusLabelValue":\[{"name":"b","value":1,`,
		"/prometheus/api/v1/cardinality/label_names":                            `^{"label_values_count_total":4,"label_names_count":2,"cardinality":\[{"label_name":"job","label_values_count":3,"samples":3,"bytes":[1-9]`,
		"/api/v1/cardinality/label_values?label_names[]=job&selector=x":         `^{"series_count_total":3,"labels":\[{"label_name":"job","label_values_count":3,"series_count":3,"cardinality":\[{"label_value":"a","series_count":1,"samples":1,"bytes":[1-9]`,
		"/api/v1/cardinality/active_series?selector=%7Bjob=%22b%22%7D":          `^{"data":\[{"__name__":"x","job":"b"}\],"weights":\[{"samples":1,"bytes":[1-9]\d*,"dollars_per_month":[^0].*}\]}$`,
		"/api/v1/status/tsdb?date=1970-01-01":                                   `"totalSeries":0,.*"seriesCountByMetricName":\[\]`,
	} {
		code, body := get(t, base+path)
		require.Equal(t, http.StatusOK, code, body)
		require.Regexp(t, want, body, path)
	}
}

// TestAdminAPI: deletion works on the store that queries read, and only if a flag enables it.
func TestAdminAPI(t *testing.T) {
	for _, tc := range []struct {
		enabled bool
		code    int
		left    string
	}{
		{false, http.StatusServiceUnavailable, `"value":[1,"3"]`},
		{true, http.StatusNoContent, `"value":[1,"2"]`},
	} {
		s := settings.Default[queryapp.Settings]()
		s.Admin.Enabled = tc.enabled
		base := serve(t, s)
		resp, err := http.PostForm(base+"/api/v1/admin/tsdb/delete_series", url.Values{"match[]": {`x{job="a"}`}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.code, resp.StatusCode)
		_, body := get(t, base+"/api/v1/query?time=1&query="+url.QueryEscape("count(last_over_time(x[1h] @ "+strconv.FormatInt(time.Now().Unix()+1, 10)+"))"))
		require.Contains(t, body, tc.left)
	}
}
