package queryapp_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
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
	"github.com/promlake/promlake/internal/ingest"
)

// serve runs the ingest and query stages over a fresh store that holds three series named x, and returns their URL.
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
	p.Store = "file://" + dir
	h, end, err := process.Open(t.Context(), p, slog.New(slog.DiscardHandler), ingestapp.New(ingest.DefaultSettings()), queryapp.New(s))
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

// TestLimitsBecome422 holds that the stage's limits reach the client as the API promises, with the name of the flag.
func TestLimitsBecome422(t *testing.T) {
	for _, tc := range []struct {
		flag string
		set  func(*queryapp.Flags)
	}{
		{"--query.max-series", func(f *queryapp.Flags) { f.MaxSeries = 2 }},
		{"--query.max-samples", func(f *queryapp.Flags) { f.MaxSamples = 2 }},
		{"--query.timeout", func(f *queryapp.Flags) { f.SamplesPerSecond, f.Threads, f.Timeout = 1, 1, 2*time.Second }},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			f := queryapp.NewFlags()
			tc.set(&f)
			base := serve(t, f.Settings(nil))
			code, body := get(t, base+"/api/v1/query?query=x")
			require.Equal(t, http.StatusUnprocessableEntity, code, body)
			require.Contains(t, body, `"errorType":"execution"`)
		})
	}
}

func TestStatus(t *testing.T) {
	base := serve(t, queryapp.NewFlags().Settings(flags.Values{{Name: "store", Text: "file://x"}}))
	for path, want := range map[string]string{
		"/api/v1/status/tsdb":   `"seriesCountByMetricName":[{"name":"x","value":3}]`,
		"/api/v1/status/flags":  `"store":"file://x"`,
		"/api/v1/status/config": `store: \"file://x\"`,
	} {
		code, body := get(t, base+path)
		require.Equal(t, http.StatusOK, code, body)
		require.Contains(t, body, want)
	}
}

// TestAdminAPI holds that deletion is wired to the store that queries read, and only if a flag says so.
func TestAdminAPI(t *testing.T) {
	for _, tc := range []struct {
		enabled bool
		code    int
		left    string
	}{
		{false, http.StatusServiceUnavailable, `"value":[1,"3"]`},
		{true, http.StatusNoContent, `"value":[1,"2"]`},
	} {
		f := queryapp.NewFlags()
		f.EnableAdminAPI = tc.enabled
		base := serve(t, f.Settings(nil))
		resp, err := http.PostForm(base+"/api/v1/admin/tsdb/delete_series", url.Values{"match[]": {`x{job="a"}`}})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.code, resp.StatusCode)
		_, body := get(t, base+"/api/v1/query?time=1&query="+url.QueryEscape("count(last_over_time(x[1h] @ "+strconv.FormatInt(time.Now().Unix()+1, 10)+"))"))
		require.Contains(t, body, tc.left)
	}
}

func TestFlags(t *testing.T) {
	f := queryapp.NewFlags()
	f.ReadSampleLimit, f.LookbackDelta = 0, time.Minute
	s := f.Settings(nil)
	require.Equal(t, -1, s.API.RemoteReadSampleLimit, "0 means no limit, as in Prometheus")
	require.Equal(t, time.Minute, s.API.LookbackDelta)
	require.Equal(t, time.Minute, s.Query.LookbackDelta)
	require.Equal(t, queryapp.DefaultSettings().API.Parser, s.API.Parser)
}

// TestEverySettingHasAFlag sets every flag to something and finds every setting of the stage changed by it.
func TestEverySettingHasAFlag(t *testing.T) {
	var f queryapp.Flags
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case field.CanInt():
			field.SetInt(int64(i + 1))
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		default:
			field.SetString("x")
		}
	}
	s := reflect.ValueOf(f.Settings(nil).Query)
	for i := range s.NumField() {
		require.False(t, s.Field(i).IsZero(), "no flag sets %s", s.Type().Field(i).Name)
	}
}
