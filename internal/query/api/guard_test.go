package api_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api"
)

// tenantBackend answers every request with one series, label value and family: the tenant's name.
type tenantBackend struct{ *tsdbBackend }

func (b tenantBackend) Querier(int64, int64) (storage.Querier, error) { return tenantQuerier{}, nil }

func (b tenantBackend) Metadata(ctx context.Context, _ string) (map[string][]metadata.Metadata, error) {
	return map[string][]metadata.Metadata{tenant.From(ctx): nil}, nil
}

func (b tenantBackend) Stats(ctx context.Context, _ int) (*tsdb.Stats, error) {
	return &tsdb.Stats{NumSeries: uint64(len(tenant.From(ctx)))}, nil
}

type tenantQuerier struct{ storage.Querier }

func (tenantQuerier) Close() error { return nil }

func (tenantQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	return &oneSeries{series: promql.NewStorageSeries(promql.Series{
		Metric: labels.FromStrings("__name__", "x", "tenant", tenant.From(ctx)),
		Floats: []promql.FPoint{{T: time.Now().Add(-time.Minute).UnixMilli(), F: 1}},
	})}
}

type oneSeries struct {
	series storage.Series
	done   bool
}

func (s *oneSeries) Next() bool {
	first := !s.done
	s.done = true
	return first
}
func (s *oneSeries) At() storage.Series                { return s.series }
func (s *oneSeries) Err() error                        { return nil }
func (s *oneSeries) Warnings() annotations.Annotations { return nil }

func TestTenantReachesTheBackend(t *testing.T) {
	h := newHandler(t, testSettings(), tenantBackend{withoutStorage(t)})
	for _, tc := range []struct{ path, want string }{
		{"/api/v1/query?query=x", `"tenant":"%"`},
		{"/prometheus/api/v1/query?query=x", `"tenant":"%"`},
		{"/api/v1/series?match[]=x", `"tenant":"%"`},
		{"/api/v1/metadata", `"data":{"%":`},
		{"/federate?match[]=x", `tenant="%"`},
	} {
		for header, name := range map[string]string{"": tenant.Default, "team-a": "team-a"} {
			req := httptest.NewRequest(http.MethodGet, tc.path, nil)
			if header != "" {
				req.Header.Set(tenant.Header, header)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			require.Equal(t, http.StatusOK, rec.Code)
			require.Contains(t, rec.Body.String(), strings.ReplaceAll(tc.want, "%", name), tc.path)
		}
	}
}

func TestInvalidTenant(t *testing.T) {
	h := newHandler(t, testSettings(), tenantBackend{withoutStorage(t)})
	for _, path := range []string{"/api/v1/query?query=x", "/api/v1/metadata", "/api/v1/read", "/api/v1/status/buildinfo", "/federate?match[]=x"} {
		method := http.MethodGet
		if path == "/api/v1/read" {
			method = http.MethodPost
		}
		req := httptest.NewRequest(method, path, nil)
		req.Header.Set(tenant.Header, "a/b")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		require.Equal(t, http.StatusBadRequest, rec.Code, path)
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
		require.JSONEq(t, `{"status":"error","errorType":"bad_data","error":"tenant ID \"a/b\" contains unsupported character '/'"}`, rec.Body.String())
	}
}

func TestBodyLimit(t *testing.T) {
	settings := testSettings()
	settings.MaxBodyBytes = 100
	h := newHandler(t, settings, tenantBackend{withoutStorage(t)})
	form := func(n int) string { return "query=1&x=" + strings.Repeat("y", n-len("query=1&x=")) }
	for _, tc := range []struct {
		name  string
		path  string
		bytes int
		sized bool // with Content-Length
		code  int
	}{
		{"at the limit", "/api/v1/query", 100, true, 200},
		{"at the limit, streamed", "/api/v1/query", 100, false, 200},
		{"one more", "/api/v1/query", 101, true, 413},
		{"one more, streamed", "/api/v1/query", 101, false, 413},
		{"remote read", "/api/v1/read", 101, false, 413},
		{"one more under Mimir's prefix", "/prometheus/api/v1/query_range", 101, true, 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(form(tc.bytes))
			if !tc.sized {
				body = io.MultiReader(body)
			}
			req := httptest.NewRequest(http.MethodPost, tc.path, body)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			require.Equal(t, tc.code, rec.Code, rec.Body.String())
			if tc.code == http.StatusRequestEntityTooLarge {
				require.JSONEq(t, `{"status":"error","errorType":"bad_data","error":"request body exceeds the limit of 100 bytes; raise --web.max-body-bytes"}`, rec.Body.String())
			}
		})
	}
}

func TestBrokenBody(t *testing.T) {
	h := newHandler(t, testSettings(), withoutStorage(t))
	req := httptest.NewRequest(http.MethodPost, "/api/v1/query", io.MultiReader(strings.NewReader("query=1"), brokenReader{}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	require.Equal(t, http.StatusBadRequest, rec.Code)
	require.Contains(t, rec.Body.String(), `"read request body: unexpected EOF"`)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// panicking panics in Metadata, and aborts in Stats as net/http's handlers do.
type panicking struct{ *tsdbBackend }

func (panicking) Metadata(context.Context, string) (map[string][]metadata.Metadata, error) {
	panic("metadata is broken")
}

func (panicking) Stats(context.Context, int) (*tsdb.Stats, error) {
	panic(http.ErrAbortHandler)
}

func TestPanicBecomes500(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	h, err := api.New(testSettings(), panicking{withoutStorage(t)}, nil, time.Now, slog.New(slog.NewTextHandler(&log, nil)), reg)
	require.NoError(t, err)
	req := httptest.NewRequest(http.MethodGet, "/api/v1/metadata", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	require.Equal(t, http.StatusInternalServerError, rec.Code)
	require.Empty(t, rec.Header().Get("Content-Encoding"), "the body is not compressed")
	require.JSONEq(t, `{"status":"error","errorType":"internal","error":"internal error, see the server's log"}`, rec.Body.String())
	require.Contains(t, log.String(), `panic="metadata is broken"`)
	require.Contains(t, log.String(), "guard_test.go", "the log holds the stack")

	n, err := testutil.GatherAndCount(reg, "promlake_http_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n, "the failed request was measured")
}

func TestAbortedHandlerStaysAborted(t *testing.T) {
	h := newHandler(t, testSettings(), panicking{withoutStorage(t)})
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { get(t, h, "/api/v1/status/tsdb") })
}

// lateWriter panics when the body of a response is written, after the header.
type lateWriter struct{ *httptest.ResponseRecorder }

func (lateWriter) Write([]byte) (int, error) { panic("too late") }

func TestPanicAfterTheFirstByteCutsTheConnection(t *testing.T) {
	h := newHandler(t, testSettings(), tenantBackend{withoutStorage(t)})
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		h.ServeHTTP(lateWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil))
	})
}

func TestRequestsAreMeasuredByRoute(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := api.New(testSettings(), newEmptyBackend(t), nil, time.Now, slog.New(slog.DiscardHandler), reg)
	require.NoError(t, err)
	get(t, h, "/api/v1/query?query=1")
	get(t, h, "/prometheus/api/v1/query?query=1")
	get(t, h, "/api/v1/label/a/values")
	get(t, h, "/api/v1/label/b/values")
	get(t, h, "/federate")
	get(t, h, "/api/v1/nothing")
	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, f := range families {
		if f.GetName() == "promlake_http_request_duration_seconds" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	require.Equal(t, map[string]uint64{"/api/v1/query 200": 2, "/api/v1/label/:name/values 200": 2, "/federate 200": 1}, got)
}

// TestDeadlineFromOutside: a request whose context has a deadline, as in a Lambda function, is
// answered as a timeout when the deadline passes.
func TestDeadlineFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, testSettings(), failing{tsdbBackend: withoutStorage(t), fail: waiting})
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		begun := time.Now()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/query?query=up", nil).WithContext(ctx))
		require.Equal(t, 29*time.Second, time.Since(begun))
		require.Equal(t, http.StatusServiceUnavailable, rec.Code)
		require.JSONEq(t, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`, rec.Body.String())
	})
}
