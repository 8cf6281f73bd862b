package selfwrite_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/selfwrite"
	"github.com/promlake/promlake/internal/base/settings"
)

// receiver records remote_write requests, or answers with a status.
type receiver struct {
	mu      sync.Mutex
	status  int // 0: accepts them
	reqs    []prompb.WriteRequest
	headers []http.Header
	paths   []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	var wr prompb.WriteRequest
	if err == nil {
		err = wr.Unmarshal(body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers, r.paths = append(r.headers, req.Header.Clone()), append(r.paths, req.URL.Path)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.status != 0:
		w.WriteHeader(r.status)
	default:
		r.reqs = append(r.reqs, wr)
		w.WriteHeader(http.StatusNoContent)
	}
}

// take returns the series of the requests since the last call.
func (r *receiver) take(t *testing.T, requests int) map[string][]prompb.Sample {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.reqs, requests)
	out := map[string][]prompb.Sample{}
	for _, req := range r.reqs {
		for _, s := range req.Timeseries {
			var labels []string
			for _, l := range s.Labels {
				labels = append(labels, l.Name+"="+l.Value)
			}
			key := strings.Join(labels, ",")
			out[key] = append(out[key], s.Samples...)
		}
	}
	r.reqs = nil
	return out
}

// process is a registry with some metrics, and its writer.
type process struct {
	reg    *prometheus.Registry
	events *prometheus.CounterVec
	log    bytes.Buffer
	clock  time.Time
	writer *selfwrite.Writer
}

func newProcess(t *testing.T, s selfwrite.Settings, own http.Handler) *process {
	t.Helper()
	p := &process{reg: prometheus.NewRegistry(), clock: time.Now()}
	p.events = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "promlake_events_total", Help: "Events."}, []string{"kind"})
	goroutines := prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_goroutines", Help: "Goroutines."})
	goroutines.Set(9)
	threads := prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_threads", Help: "Threads."})
	p.reg.MustRegister(p.events, goroutines, threads)
	var err error
	p.writer, err = selfwrite.New(s, p.reg, p.reg, own, slog.New(slog.NewTextHandler(&p.log, nil)), func() time.Time { return p.clock })
	require.NoError(t, err)
	return p
}

func configured(url string) selfwrite.Settings {
	s := settings.Default[selfwrite.Settings]()
	s.URL, s.Token, s.Job = url, "pl_self", "ingest-fn"
	return s
}

// lambda sets the environment variables of a function.
func lambda(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "promlake-ingest")
	t.Setenv("AWS_LAMBDA_LOG_STREAM_NAME", "2026/01/02/[$LATEST]abc")
}

const (
	target = "function=promlake-ingest,instance=2026/01/02/[$LATEST]abc,job=ingest-fn"
	events = "__name__=promlake_events_total,function=promlake-ingest,instance=2026/01/02/[$LATEST]abc,job=ingest-fn,kind=a"
	gauge  = "__name__=go_goroutines," + target
)

func TestMaybeWrite(t *testing.T) {
	lambda(t)
	rec := &receiver{}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	p := newProcess(t, configured(srv.URL), nil)

	p.events.WithLabelValues("a").Add(3)
	p.writer.MaybeWrite(t.Context())
	rec.take(t, 0)

	p.clock = p.clock.Add(time.Minute)
	p.writer.MaybeWrite(t.Context())
	first := p.clock.UnixMilli()
	require.Equal(t, "promlake", rec.headers[0].Get("X-Scope-OrgID"))
	require.Equal(t, "Bearer pl_self", rec.headers[0].Get("Authorization"))
	require.Equal(t, "/api/v1/write", rec.paths[0])
	require.Len(t, rec.reqs[0].Metadata, 3)
	got := rec.take(t, 1)
	require.Equal(t, []prompb.Sample{{Value: 9, Timestamp: first}}, got[gauge])
	require.Len(t, got[events], 2, "the counter begins at 0")
	require.Zero(t, got[events][0].Value)
	require.Less(t, got[events][0].Timestamp, first)
	require.Equal(t, prompb.Sample{Value: 3, Timestamp: first}, got[events][1])
	require.NotContains(t, got, "__name__=go_threads,"+target, "not among those that are written")

	p.clock = p.clock.Add(time.Minute - time.Millisecond)
	p.writer.MaybeWrite(t.Context())
	rec.take(t, 0)
	p.clock = p.clock.Add(time.Millisecond)
	p.writer.MaybeWrite(t.Context())
	require.Empty(t, rec.reqs[0].Metadata, "sent less than an hour ago")
	require.Equal(t, []prompb.Sample{{Value: 3, Timestamp: p.clock.UnixMilli()}}, rec.take(t, 1)[events])
}

func TestWriteThatFails(t *testing.T) {
	lambda(t)
	rec := &receiver{status: http.StatusForbidden}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	p := newProcess(t, configured(srv.URL), nil)
	p.events.WithLabelValues("a").Add(3)
	p.clock = p.clock.Add(time.Minute)
	p.writer.MaybeWrite(t.Context())
	require.Contains(t, p.log.String(), "cannot write own metrics")
	require.NotContains(t, p.log.String(), "pl_self")
	rec.take(t, 0)
	require.Len(t, rec.paths, 1)
	p.writer.MaybeWrite(t.Context())
	require.Len(t, rec.paths, 1, "not tried again at once")

	rec.status = 0
	p.clock = p.clock.Add(time.Minute)
	p.writer.MaybeWrite(t.Context())
	require.Len(t, rec.take(t, 1)[events], 2, "the counter still begins at 0")
	writes, err := p.reg.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, writes)
	require.NoError(t, testutil.GatherAndCompare(p.reg, strings.NewReader(`
# HELP promlake_self_writes_total Writes of the process's own metrics.
# TYPE promlake_self_writes_total counter
promlake_self_writes_total{result="error"} 1
promlake_self_writes_total{result="success"} 1
`), "promlake_self_writes_total"))
}

func TestFlushEndsTheSeries(t *testing.T) {
	lambda(t)
	rec := &receiver{}
	p := newProcess(t, configured(selfwrite.Here), rec)
	p.events.WithLabelValues("a").Add(3)
	p.clock = p.clock.Add(time.Minute)
	p.writer.Flush(t.Context())
	got := rec.take(t, 1)
	require.Empty(t, rec.headers[0].Get("Authorization"), "no token is needed at home")
	require.Len(t, got[events], 3)
	require.Zero(t, got[events][0].Value)
	require.Equal(t, prompb.Sample{Value: 3, Timestamp: p.clock.UnixMilli()}, got[events][1])
	for key, samples := range got {
		last := samples[len(samples)-1]
		require.True(t, value.IsStaleNaN(last.Value), key)
		require.Equal(t, p.clock.UnixMilli()+1, last.Timestamp, key)
	}
}

// TestWriteThatHangs: an invocation does not wait for the other end; a write takes at most a tenth
// of its time.
func TestWriteThatHangs(t *testing.T) {
	release := make(chan struct{})
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++; <-release }))
	defer srv.Close()
	defer close(release)
	p := newProcess(t, configured(srv.URL), nil)
	p.clock = p.clock.Add(time.Minute)

	short, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	p.writer.MaybeWrite(short)
	require.Zero(t, asked, "too little time is left to try")

	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p.writer.MaybeWrite(long)
	require.NoError(t, long.Err(), "the invocation has time left")
	require.Contains(t, p.log.String(), "deadline exceeded")
}

func TestOff(t *testing.T) {
	w, err := selfwrite.New(settings.Default[selfwrite.Settings](), nil, nil, nil, nil, nil)
	require.NoError(t, err)
	require.Nil(t, w)
	w.MaybeWrite(t.Context())
	w.Flush(t.Context())
}

func TestHereWithoutAWriteStage(t *testing.T) {
	_, err := selfwrite.New(configured(selfwrite.Here), nil, prometheus.NewRegistry(), nil, slog.New(slog.DiscardHandler), time.Now)
	require.ErrorContains(t, err, "self.url: here is for processes that have a write stage")
}

func TestRunWritesUntilItsEnd(t *testing.T) {
	s := configured(selfwrite.Here)
	s.Interval = time.Millisecond // less than Validate allows
	two := make(chan struct{})
	var seen int
	p := newProcess(t, s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if seen++; seen == 2 {
			close(two)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.writer.Run(ctx); close(done) }()
	<-two
	cancel()
	<-done
}
