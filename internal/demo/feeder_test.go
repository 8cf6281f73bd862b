package demo_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/demo"
	"github.com/promlake/promlake/internal/settings"
)

// receiver records remote_write requests; it answers the first fail ones with 503.
type receiver struct {
	t    *testing.T
	fail int

	mu   sync.Mutex
	reqs []prompb.WriteRequest
	two  chan struct{} // closed at the second delivered request
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail > 0 {
		r.fail--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	raw, err := snappy.Decode(nil, body)
	var wr prompb.WriteRequest
	if err == nil {
		err = wr.Unmarshal(raw)
	}
	if err != nil || req.URL.Path != "/api/v1/write" || req.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" {
		r.t.Errorf("not a remote_write 1.0 request: %s %v %v", req.URL, req.Header, err)
	}
	r.reqs = append(r.reqs, wr)
	if len(r.reqs) == 2 {
		close(r.two)
	}
	w.WriteHeader(http.StatusNoContent)
}

// syncBuffer is a buffer that two goroutines may use concurrently.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *syncBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func TestFeeder(t *testing.T) {
	rec := &receiver{t: t, fail: 1, two: make(chan struct{})}
	srv := httptest.NewServer(rec)
	defer srv.Close()

	own := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "own_total", Help: "Own."}, []string{"job"})
	requests.WithLabelValues("flush").Add(3)
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "own_seconds", Help: "Own.", Buckets: []float64{1}})
	latency.Observe(0.5)
	own.MustRegister(requests, latency)

	s := settings.Default[demo.Settings]()
	s.Interval, s.Instance = 100*time.Millisecond, "here"
	var out syncBuffer
	f, err := demo.New(s, srv.URL, "", own, &out, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	<-rec.two
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "remote_write target") }, time.Minute, time.Millisecond)
	cancel()
	<-done

	rec.mu.Lock()
	defer rec.mu.Unlock()
	hostPort := strings.TrimPrefix(srv.URL, "http://")
	first := seriesOf(rec.reqs[0])
	for key, want := range map[string]float64{
		`__name__=up,instance=here,job=node`:                                                1,
		`__name__=up,instance=` + hostPort + `,job=promlake`:                                1,
		`__name__=own_total,exported_job=flush,instance=` + hostPort + `,job=promlake`:      3,
		`__name__=own_seconds_bucket,instance=` + hostPort + `,job=promlake,le=+Inf`:        1,
		`__name__=own_seconds_count,instance=` + hostPort + `,job=promlake`:                 1,
		`__name__=node_scrape_collector_success,collector=cpu,instance=here,job=node`:       1,
		`__name__=node_scrape_collector_success,collector=loadavg,instance=here,job=node`:   1,
		`__name__=own_seconds_bucket,instance=` + hostPort + `,job=promlake,le=1`:           1,
		`__name__=node_scrape_collector_success,collector=netdev,instance=here,job=node`:    1,
		`__name__=node_scrape_collector_success,collector=meminfo,instance=here,job=node`:   1,
		`__name__=node_scrape_collector_success,collector=diskstats,instance=here,job=node`: 1,
	} {
		got, ok := first[key]
		require.True(t, ok, "no series %s", key)
		require.Equal(t, want, got, key)
	}
	require.NotEmpty(t, rec.reqs[0].Metadata)
	require.Empty(t, rec.reqs[1].Metadata, "types and help texts are not sent with every round")
	for _, e := range demo.Examples() {
		require.Contains(t, out.String(), "curl -sG "+srv.URL+"/api/v1/query --data-urlencode 'query="+e.Query+"'\n")
	}
}

// seriesOf returns the request's values by name=value,… and fails if labels are not sorted.
func seriesOf(req prompb.WriteRequest) map[string]float64 {
	out := map[string]float64{}
	for _, ts := range req.Timeseries {
		var parts []string
		for _, l := range ts.Labels {
			parts = append(parts, l.Name+"="+l.Value)
		}
		if !slices.IsSortedFunc(ts.Labels, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) }) {
			parts = append(parts, "(unsorted)")
		}
		out[strings.Join(parts, ",")] = ts.Samples[0].Value
	}
	return out
}

func TestFeederWithoutProc(t *testing.T) {
	rec := &receiver{t: t, two: make(chan struct{})}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	s := settings.Default[demo.Settings]()
	s.Interval, s.ProcPath = 100*time.Millisecond, t.TempDir()+"/none"
	f, err := demo.New(s, srv.URL, "", prometheus.NewRegistry(), io.Discard, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	<-rec.two
	cancel()
	<-done
	require.Len(t, seriesOf(rec.reqs[0]), 1, "only up of job promlake")
}

func TestSettingsValidate(t *testing.T) {
	s := settings.Default[demo.Settings]()
	require.NoError(t, s.Validate())
	s.Interval, s.ProcPath = time.Millisecond, ""
	err := s.Validate()
	require.ErrorContains(t, err, "demo.interval: want at least 100ms, got 1ms")
	require.ErrorContains(t, err, "demo.proc-path")
}
