package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/tests/support/s3test"
)

// lines is a log or a terminal that tests read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *lines) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// server is a running Promlake.
type server struct {
	url    string
	flight string // the address of Flight SQL
	out    *lines
	stop   context.CancelFunc
	done   chan error
}

// defaults returns settings that serve and compact a local directory without a demo.
func defaults() app.Settings {
	return app.DefaultSettings()
}

// start runs all of Promlake on a port that the kernel chooses and waits until it is ready.
func start(t *testing.T, s app.Settings) server {
	t.Helper()
	s.Process.Listen = "127.0.0.1:0"
	return startFunc(t, func(ctx context.Context, out io.Writer, logger *slog.Logger) error {
		return app.Run(ctx, s, out, logger)
	})
}

// startStage runs one stage as a process of its own.
func startStage(t *testing.T, store string, b process.Builder) server {
	t.Helper()
	s := process.DefaultSettings()
	s.Listen, s.Store = "127.0.0.1:0", store
	return startFunc(t, func(ctx context.Context, _ io.Writer, logger *slog.Logger) error {
		return process.Run(ctx, s, logger, b)
	})
}

func startFunc(t *testing.T, run func(context.Context, io.Writer, *slog.Logger) error) server {
	t.Helper()
	log := &lines{}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	srv := server{out: &lines{}, stop: cancel, done: make(chan error, 1)}
	go func() { srv.done <- run(ctx, srv.out, slog.New(slog.NewJSONHandler(log, nil))) }()
	require.Eventually(t, func() bool {
		select {
		case err := <-srv.done:
			t.Fatalf("promlake ended: %v\n%s", err, log)
		default:
		}
		srv.url = servingURL(log.String())
		return srv.url != ""
	}, time.Minute, time.Millisecond)
	code, _ := get(t, srv.url+"/-/ready")
	require.Equal(t, http.StatusOK, code)
	return srv
}

// servingURL finds the URL that the process logs when it is ready.
func servingURL(log string) string {
	for line := range strings.Lines(log) {
		var rec struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &rec) == nil && rec.Msg == "serving" {
			return rec.URL
		}
	}
	return ""
}

func (s server) end(t *testing.T) {
	t.Helper()
	s.stop()
	require.NoError(t, <-s.done)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// write sends one sample by remote_write 1.0.
func write(t *testing.T, url, path string, ts time.Time, v float64) {
	t.Helper()
	client, err := remote.NewAPI(url, remote.WithAPIPath(path))
	require.NoError(t, err)
	_, err = client.Write(t.Context(), remote.WriteV1MessageType, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "x_total"}, {Name: "path", Value: path}},
		Samples: []prompb.Sample{{Timestamp: ts.UnixMilli(), Value: v}},
	}}})
	require.NoError(t, err)
}

func query(t *testing.T, url, expr string, at time.Time) model.Value {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: url})
	require.NoError(t, err)
	v, warnings, err := v1.NewAPI(client).Query(t.Context(), expr, at)
	require.NoError(t, err)
	require.Empty(t, warnings)
	return v
}

func TestWriteQueryRestart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		store func(t *testing.T) string
	}{
		{"file", func(t *testing.T) string { return "file://" + t.TempDir() }},
		{"s3", func(t *testing.T) string { return s3test.Start(t).StoreURL(t) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := defaults()
			s.Process.Store = tc.store(t)
			s.Query.Query.MaxStaleness = time.Hour // what the process itself writes is visible at once
			now := time.Now()
			paths := []string{"api/v1/write", "api/v1/push", "prometheus/api/v1/write", "prometheus/api/v1/push"}

			srv := start(t, s)
			for i, path := range paths {
				write(t, srv.url, path, now, float64(i))
				require.Len(t, query(t, srv.url, `x_total`, now), i+1)
			}
			check := func(url string) {
				v := query(t, url, `sort(x_total)`, now).(model.Vector)
				require.Len(t, v, len(paths))
				for i, path := range paths {
					require.Equal(t, model.LabelValue(path), v[i].Metric["path"])
					require.Equal(t, model.SampleValue(i), v[i].Value)
				}
			}
			check(srv.url)
			check(srv.url + "/prometheus")
			srv.end(t)

			srv = start(t, s)
			check(srv.url)
			srv.end(t)
		})
	}
}

func TestStagesApart(t *testing.T) {
	store, now := "file://"+t.TempDir(), time.Now()
	in := startStage(t, store, ingestapp.New(nil, ingest.DefaultSettings()))
	out := startStage(t, store, queryapp.New(settings.Default[queryapp.Settings]()))
	write(t, in.url, "api/v1/write", now, 42)
	v := query(t, out.url, `x_total`, now).(model.Vector)
	require.Len(t, v, 1)
	require.Equal(t, model.SampleValue(42), v[0].Value)

	resp, err := http.Post(out.url+"/api/v1/write", "application/x-protobuf", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "the query stage takes no writes")
	code, _ := get(t, in.url+"/api/v1/query?query=up")
	require.Equal(t, http.StatusNotFound, code, "the ingest stage answers no queries")
	in.end(t)
	out.end(t)
}

func TestFace(t *testing.T) {
	s := defaults()
	s.Process.Store = "file://" + t.TempDir()
	srv := start(t, s)
	for _, tc := range []struct {
		path string
		code int
		want string
	}{
		{"/assets/nothing", 404, ""},
		{"/nothing", 404, ""},
		{"/metrics", 200, "promlake_build_info{"},
		{"/-/healthy", 200, "healthy"},
		{"/-/ready", 200, "ready"},
		{"/api/v1/query?query=1", 200, `"resultType":"scalar"`},
		{"/api/v1/query?query=(", 400, `"errorType":"bad_data"`},
		{"/prometheus/api/v1/labels", 200, `"status":"success"`},
		{"/api/v1/status/buildinfo", 200, `"version"`},
		{"/federate?match[]=up", 200, ""},
		{"/api/v1/write", 405, ""},
	} {
		t.Run(tc.path, func(t *testing.T) {
			code, body := get(t, srv.url+tc.path)
			require.Equal(t, tc.code, code, body)
			require.Contains(t, body, tc.want)
		})
	}
	srv.end(t)
}

func TestDemo(t *testing.T) {
	s := defaults()
	s.Process.Store = "file://" + t.TempDir()
	d := settings.Default[demo.Settings]()
	d.Interval, d.Instance = 200*time.Millisecond, "here"
	s.Demo, s.Feeder = true, d
	srv := start(t, s)
	require.Eventually(t, func() bool { return strings.Contains(srv.out.String(), "remote_write target") }, time.Minute, 10*time.Millisecond)

	up := query(t, srv.url, `sort_by_label(up, "job")`, time.Now()).(model.Vector)
	require.Len(t, up, 2)
	require.Equal(t, model.LabelValue("node"), up[0].Metric["job"])
	require.Equal(t, model.LabelValue("here"), up[0].Metric["instance"])
	require.Equal(t, model.LabelValue("promlake"), up[1].Metric["job"])
	for _, e := range demo.Examples() {
		require.NotEmpty(t, query(t, srv.url, e.Query, time.Now()), e.Query)
	}
	srv.end(t)
}

// TestDemoOnRequest: a server that scrapes nothing starts the demo when it is asked to, once.
func TestDemoOnRequest(t *testing.T) {
	s := defaults()
	s.Process.Store, s.Feeder.Interval, s.Feeder.Instance = "file://"+t.TempDir(), 200*time.Millisecond, "here"
	srv := start(t, s)
	code, body := get(t, srv.url+"/api/v1/demo")
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"status":"success","data":{"running":false,"tenant":"anonymous"}}`, body)
	code, _ = get(t, srv.url+demo.NodePath)
	require.Equal(t, http.StatusNotFound, code)
	_, body = get(t, srv.url+"/api/v1/scrape_pools")
	require.NotContains(t, body, "node")
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url+"/api/v1/demo", nil)
	require.NoError(t, err)
	foreign.Header.Set("Origin", "https://other.example")
	refused, err := http.DefaultClient.Do(foreign)
	require.NoError(t, err)
	require.NoError(t, refused.Body.Close())
	require.Equal(t, http.StatusForbidden, refused.StatusCode, "a page of another origin")
	for range 2 {
		resp, err := http.Post(srv.url+"/api/v1/demo", "", nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.Eventually(t, func() bool {
		return len(query(t, srv.url, `up{instance="here"} == 1`, time.Now()).(model.Vector)) == 1
	}, time.Minute, 10*time.Millisecond)
	_, body = get(t, srv.url+"/api/v1/demo")
	require.Contains(t, body, `"running":true`)
	_, body = get(t, srv.url+"/api/v1/scrape_pools")
	require.Contains(t, body, "node")
	_, body = get(t, srv.url+"/api/v1/status/config")
	require.Contains(t, body, demo.NodePath)
	srv.end(t)
}

// TestDemoIsNotOffered where others reach the process without a token, with --no-demo.offer, and
// beside a configuration.
func TestDemoIsNotOffered(t *testing.T) {
	for name, change := range map[string]func(*app.Settings){
		"reachable": func(s *app.Settings) { s.Process.Listen = "0.0.0.0:9009" },
		"off":       func(s *app.Settings) { s.Feeder.Offer = false },
		"configured": func(s *app.Settings) {
			s.Prometheus.ConfigFile = filepath.Join(t.TempDir(), "prometheus.yml")
			require.NoError(t, os.WriteFile(s.Prometheus.ConfigFile, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.Process.Store, s.Prometheus.Queue.Dir = "file://"+t.TempDir(), t.TempDir()
			change(&s)
			h, end, err := process.Open(t.Context(), s.Process, slog.New(slog.DiscardHandler), app.Builders(s, io.Discard)...)
			require.NoError(t, err)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/demo", nil))
			require.Equal(t, http.StatusNotFound, w.Code)
			require.NoError(t, end())
		})
	}
}

// TestMergesOwnSegmentsFromMemory: the compactor of a process takes the segments that its ingest
// stage stored from memory, unless there is none for them, and the answer stays the same.
func TestMergesOwnSegmentsFromMemory(t *testing.T) {
	for bytes, from := range map[int64]string{64 << 20: "memory", 0: "store"} {
		s := defaults()
		s.Process.Store = "file://" + t.TempDir()
		s.Compaction.Interval, s.Compaction.Recent = 10*time.Millisecond, bytes
		s.Compact.SettleDelay, s.Compact.MinPartSegments = time.Millisecond, 2
		srv := start(t, s)
		now, written, merged := time.Now(), 0, false
		// A merge that begins between the put of a segment and its keeping reads the object, so one
		// merge tells nothing. More segments make more merges.
		for deadline := now.Add(3 * time.Minute); !merged && time.Now().Before(deadline); {
			for range 4 {
				write(t, srv.url, "api/v1/write", now.Add(time.Duration(written)*time.Millisecond), float64(written))
				written++
			}
			_, body := get(t, srv.url+"/metrics")
			merged = strings.Contains(body, `promlake_compact_merged_segments_total{from="`+from+`"}`)
		}
		require.True(t, merged, "from %s", from)
		v := query(t, srv.url, `count_over_time(x_total[1h])`, now.Add(30*time.Minute)).(model.Vector)
		require.Len(t, v, 1)
		require.Equal(t, model.SampleValue(written), v[0].Value)
		srv.end(t)
	}
}
