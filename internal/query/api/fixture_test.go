package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query/api"
)

const testLookback = 5 * time.Minute

// tsdbBackend is a Backend over upstream's TSDB, the storage of the reference server.
type tsdbBackend struct {
	*promql.Engine
	*teststorage.TestStorage
	metadata map[string][]metadata.Metadata
}

// both parts close themselves at the end of the test
func (b *tsdbBackend) Close() error { return nil }

func (b *tsdbBackend) Run(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

func (b *tsdbBackend) Metadata(_ context.Context, metric string) (map[string][]metadata.Metadata, error) {
	if metric == "" {
		return b.metadata, nil
	}
	if md, ok := b.metadata[metric]; ok {
		return map[string][]metadata.Metadata{metric: md}, nil
	}
	return nil, nil
}

func (b *tsdbBackend) Stats(_ context.Context, limit int) (*tsdb.Stats, error) {
	return b.Head().Stats(model.MetricNameLabel, limit), nil
}

const testSeries = `
load 1m
	up{job="node",instance="a"}              1x120
	up{job="node",instance="b"}              0x60 1x60
	requests_total{job="node",code="200"}    0+10x120
	requests_total{job="node",code="500"}    0+1x60 _x30 0+2x30
	odd{kind="nan"}                          NaN+0x120
	odd{kind="inf"}                          Inf+0x120
	odd{kind="-inf"}                         -Inf+0x120
	gone                                     1+1x50 stale
	latency{job="node"}                      {{schema:1 sum:4 count:4 buckets:[1 2 1]}}x120
	latency_custom{job="node"}               {{schema:-53 sum:5 count:4 custom_values:[5 10] buckets:[1 2 1]}}x120
	{"utf8.metric","dotted.label"="ü"}       3x120
	info_metric{version="1<2&3"}             1x120
`

func newBackend(t testing.TB) *tsdbBackend {
	t.Helper()
	st := promqltest.LoadedStorage(t, testSeries)
	t.Cleanup(func() { _ = st.Close() })
	app := st.Appender(t.Context())
	series := labels.FromStrings("__name__", "requests_total", "job", "node", "code", "200")
	for i := range int64(3) {
		_, err := app.AppendExemplar(0, series, exemplar.Exemplar{
			Labels: labels.FromStrings("trace_id", strings.Repeat("f", int(i)+1)), Value: float64(i), Ts: (i + 100) * 60_000, HasTs: true,
		})
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
	return &tsdbBackend{Engine: newEngine(t), TestStorage: st, metadata: testMetadata()}
}

func newEngine(t testing.TB) *promql.Engine {
	return promqltest.NewTestEngine(t, true, testLookback, 50_000)
}

func testMetadata() map[string][]metadata.Metadata {
	return map[string][]metadata.Metadata{
		"up":             {{Type: "gauge", Help: "Is it up?"}},
		"requests_total": {{Type: "unknown", Help: "x"}, {Type: "counter", Help: "Requests.", Unit: "requests"}, {Type: "counter", Help: "Requests <old>."}},
	}
}

// newEmptyBackend returns a Backend to which a test appends samples itself.
func newEmptyBackend(t testing.TB) *tsdbBackend {
	t.Helper()
	return &tsdbBackend{Engine: newEngine(t), TestStorage: teststorage.New(t)}
}

// withoutStorage returns a Backend that can evaluate but has no storage.
func withoutStorage(t testing.TB) *tsdbBackend {
	t.Helper()
	return &tsdbBackend{Engine: newEngine(t)}
}

type point struct {
	labels labels.Labels
	t      int64 // ms
	v      float64
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
}

func (b *tsdbBackend) append(t testing.TB, points ...point) {
	t.Helper()
	app := b.Appender(t.Context())
	for _, p := range points {
		var err error
		if p.h != nil || p.fh != nil {
			_, err = app.AppendHistogram(0, p.labels, p.t, p.h, p.fh)
		} else {
			_, err = app.Append(0, p.labels, p.t, p.v)
		}
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
}

func testSettings() api.Settings {
	s := settings.Default[api.Settings]()
	s.LookbackDelta = testLookback
	s.Parser = promqltest.TestParserOpts
	s.Flags = map[string]string{"store": "file://./data", "listen": "127.0.0.1:9009"}
	return s
}

func newHandler(t testing.TB, s api.Settings, b api.Backend) http.Handler {
	t.Helper()
	h, err := api.New(s, b, nil, time.Now, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	return h
}

func get(t testing.TB, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
	return rec
}

// serve starts a server on a port that the kernel chooses.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}

var _ api.Backend = (*tsdbBackend)(nil)
